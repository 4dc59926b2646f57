"""The steps. A step that was released is never edited: a change of the tables is a new one."""
