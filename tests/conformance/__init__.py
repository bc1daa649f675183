"""Kernels that every engine must run: the archetypes with NumPy references, in every memory layout."""
