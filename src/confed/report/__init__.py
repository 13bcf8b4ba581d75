"""The report of a run: one HTML page that needs nothing else."""

from confed.report.page import write_report

__all__ = ["write_report"]
