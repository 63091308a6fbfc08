"""Records of many batches as columns: numpy arrays that process thousands of them at once.

What it is: batches opened together (`opened_batches`), where their records and keys stand
(`record_columns`), the keys' hashes (`key_hashes`), and the newest offset of each (`offset_map`).
numpy is imported only here and by users of this package, all in the cleaner process.

What it is not: a decision on what stays; that is in `storage.compaction.kept_records`.

Imported by `storage.compaction`, from which only `worker` is started. Start reading in
`opened_batches`.
"""
