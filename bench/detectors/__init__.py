"""The benchmark of the detectors: small finished phases, sound ones and ones with a planted defect."""
