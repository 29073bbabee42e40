"""The command line `paimon`: one module for each group of commands; the public interface does the work."""
