"""The simulated world: the library's own operations as processes on one storage, where anything may go wrong.

Law: one seed, one history. Storage, clock, ids, chance and the order of steps all come from it, so that a history that
went wrong can be run again, made smaller, and told as a story.
"""
