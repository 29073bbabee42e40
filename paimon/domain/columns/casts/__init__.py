"""The casts between numbers, texts and times that `paimon.domain.columns.cast` chooses from."""
