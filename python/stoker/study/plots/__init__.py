"""Pictures of what a study found: `stoker study FILE --plots FOLDER`. Needs matplotlib, which nothing else here does."""
