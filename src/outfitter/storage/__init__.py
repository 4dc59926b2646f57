"""Where the catalog is kept: for now a folder of files, loaded whole and written all or nothing."""

from outfitter.storage.files import read_bytes, write_files
from outfitter.storage.folder import AGENTS, CAPABILITIES, SERVERS, CatalogFolder, load_catalog

__all__ = ["AGENTS", "CAPABILITIES", "SERVERS", "CatalogFolder", "load_catalog", "read_bytes", "write_files"]
