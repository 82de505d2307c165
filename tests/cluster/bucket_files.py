"""An object store for tests: `bucket:///folder` puts whole objects, has no folders, and cannot rename."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from fsspec import AbstractFileSystem


class Bucket(AbstractFileSystem):
    """Objects under names with slashes; they are kept in files here, so that every process of a test sees them."""

    protocol = "bucket"
    cachable = False

    def pipe_file(self, path, value, mode="overwrite", **options):
        target = Path(self._strip_protocol(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.parent / f"~{uuid.uuid4().hex}"
        temporary.write_bytes(value)
        try:
            os.link(temporary, target) if mode == "create" else temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)

    def cat_file(self, path, start=None, end=None, **options):
        return Path(self._strip_protocol(path)).read_bytes()[start:end]

    def info(self, path, **options):
        place = Path(self._strip_protocol(path))
        kind = "directory" if place.is_dir() else "file"
        return {"name": str(place), "type": kind, "size": place.stat().st_size}

    def ls(self, path, detail=True, **options):
        place = Path(self._strip_protocol(path))
        found = sorted(place.iterdir()) if place.is_dir() else [place] if place.exists() else []
        if not found:
            raise FileNotFoundError(path)
        listed = [self.info(str(item)) for item in found if not item.name.startswith("~")]
        return listed if detail else [item["name"] for item in listed]

    def rm_file(self, path):
        Path(self._strip_protocol(path)).unlink()


def install(folder: Path) -> None:
    """Lay down, in a folder that is to be on the path, what makes fsspec know `bucket://` in every process."""
    known = folder / "bucket_files-1.dist-info"
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: bucket-files\nVersion: 1\n")
    (known / "entry_points.txt").write_text("[fsspec.specs]\nbucket = bucket_files:Bucket\n")
