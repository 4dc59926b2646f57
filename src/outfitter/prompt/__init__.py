"""What the model reads: sections, templates, and what they render to."""

from outfitter.prompt.section import Section, SectionOptions, SectionVisibility

__all__ = ["Section", "SectionOptions", "SectionVisibility"]
