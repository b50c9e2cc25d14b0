"""Data: readers, tokenisers, storage and batches."""
