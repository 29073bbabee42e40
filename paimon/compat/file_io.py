"""Files of a table by the names of pypaimon: the methods that programs call to look at metadata.

Source: `pypaimon.common.file_io`.
"""

from __future__ import annotations

from paimon.compat.refused import PeerClass
from paimon.ports.files import FileIO as PaimonFileIO


class FileIO(PeerClass):
    """The storage of a table, made by `FileStoreTable.file_io`.

    Parameters
    ----------
    files : PaimonFileIO
        The storage of this library.
    """

    def __init__(self, files: PaimonFileIO) -> None:
        self._files = files

    def exists(self, path: str) -> bool:
        """Return whether there is a file or a directory."""
        return self._files.status(path) is not None

    def list_names(self, path: str) -> list[str]:
        """Return the names of the entries of a directory; none of one that does not exist."""
        return [] if not self.exists(path) else [entry.name for entry in self._files.list(path)]

    def get_file_size(self, path: str) -> int:
        """Return the size of a file in bytes.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        """
        status = self._files.status(path)
        if status is None:
            raise FileNotFoundError(path)
        return status.size

    def read_file_utf8(self, path: str) -> str:
        """Return the text of a file."""
        with self._files.open(path) as source:
            return bytes(source.read()).decode("utf8")
