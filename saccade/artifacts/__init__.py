"""Files that survive a crash and are checked before they are used.

Every file is written next to the old one, synced and then renamed; folders are sealed with the SHA-256 of their files.
Tensors are safetensors and everything else is JSON or text: no artifact is a pickle. Whatever is read is checked first,
so that a damaged or hostile file gives one clear `ArtifactError`.
"""

from saccade.artifacts.documents import JsonObject, nesting, parse_json, read_json
from saccade.artifacts.files import ArtifactError, keep_damaged, make_folder, open_regular, sync_folder, write_file
from saccade.artifacts.folders import (
    CHECKSUMS,
    fill_folder,
    remove_folder,
    replacing,
    restore_folders,
    seal,
    unsealed,
    verify,
    write_folder,
)
from saccade.artifacts.sharded import is_sharded, placed, whole
from saccade.artifacts.tensors import check_header, pack_tensors, read_header, read_tensors
from saccade.artifacts.weights import (
    load_fitting_weights,
    load_weights,
    save_weights,
    set_weights,
    shapes_of,
    weights_of,
)

__all__ = [
    "CHECKSUMS",
    "ArtifactError",
    "JsonObject",
    "check_header",
    "fill_folder",
    "is_sharded",
    "keep_damaged",
    "load_fitting_weights",
    "load_weights",
    "make_folder",
    "nesting",
    "open_regular",
    "pack_tensors",
    "parse_json",
    "placed",
    "read_header",
    "read_json",
    "read_tensors",
    "remove_folder",
    "replacing",
    "restore_folders",
    "save_weights",
    "seal",
    "set_weights",
    "shapes_of",
    "sync_folder",
    "unsealed",
    "verify",
    "weights_of",
    "whole",
    "write_file",
    "write_folder",
]
