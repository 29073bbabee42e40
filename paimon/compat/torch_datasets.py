"""The arguments of pypaimon's `to_torch` as datasets of this library.

Source: `pypaimon.read.datasource.torch_dataset`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paimon.compat.refused import refuse

if TYPE_CHECKING:
    from paimon.compat.table_read import TableRead

_KNOWN = {
    "prefetch_concurrency": 1,
    "batch_format": "row",
    "batch_size": None,
    "to_tensor_fn": None,
    "shuffle": False,
    "seed": 0,
    "buffer_size": 1000,
    "max_buffer_input_splits": 10,
    "auto_detect_rank": False,
    "sharding_rank": None,
    "sharding_world_size": None,
}


def make_dataset(read: TableRead, splits: Sequence[Any], streaming: bool, named: Mapping[str, Any]) -> Any:
    """Return a dataset of PyTorch."""
    unknown = [name for name in named if name not in _KNOWN]
    if unknown:
        raise TypeError(f"to_torch() got an unexpected keyword argument {unknown[0]!r}")
    given = {**_KNOWN, **named}
    if given["shuffle"]:
        refuse("to_torch(shuffle=True)", "pass the dataset with all rows to a DataLoader with shuffle=True")
    if given["prefetch_concurrency"] != 1:
        refuse("to_torch(prefetch_concurrency=…)", "pass num_workers to the DataLoader")
    if given["auto_detect_rank"]:
        refuse("to_torch(auto_detect_rank=True)", "pass sharding_rank and sharding_world_size")
    batches = given["batch_format"] != "row"
    return read.open_plain().to_torch(
        [split.inner for split in splits],
        streaming=streaming,
        batch_size=(given["batch_size"] or 1024) if batches else None,
        convert=given["to_tensor_fn"],
        rank=given["sharding_rank"] or 0,
        world_size=given["sharding_world_size"] or 1,
    )
