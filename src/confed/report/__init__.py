"""The report of a run: one HTML page that needs nothing else."""

from confed.report.page import write_report
from confed.report.sections import figures

__all__ = ["figures", "write_report"]
