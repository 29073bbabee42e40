"""The order of the records of a merge: normalized keys, groups of one key, and the newest row of each key."""
