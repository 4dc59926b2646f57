"""Outfitter's client under the official conformance suite: ``make conformance``.

``setup`` installs the suite, ``run_client`` runs its client scenarios one by one, ``client_under_test`` is what each of
them starts, ``sign_in`` lends it the official SDK's interactive OAuth. Nothing here is part of the package.
"""
