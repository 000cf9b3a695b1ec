"""One small, complete plugin for each hook, with its tests: what ``gsd plugins new`` fills its package with.

A plugin here is called ``my_plugin`` and its settings ``MyPluginSettings``; ``gsd plugins new`` replaces the
names. The docstring of a module is the text of the package's README, so it is written in Markdown.
"""
