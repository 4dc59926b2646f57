"""Tests of Outfitter: promises kept, properties shown, the house in order."""
