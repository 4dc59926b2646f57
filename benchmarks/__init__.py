"""What Outfitter costs, as ratios against something real measured in the same run. ``make bench`` runs all of it."""
