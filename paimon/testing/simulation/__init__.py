"""The simulation: the operations of this library as interleaved actors on one storage, where any operation may fail.

Invariant: one seed gives one history. Storage, clock, ids, random numbers and the order of steps all come from the
seed. A history that violates an invariant can therefore be replayed, shrunk and described step by step.
"""
