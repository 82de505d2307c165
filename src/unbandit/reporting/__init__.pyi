from .api import Report as Report
from .api import report as report
from .page import stylesheet as stylesheet
from .pdf import write_pdf as write_pdf
from .population import PopulationReport as PopulationReport
from .population import population_report as population_report
from .provenance import LogSource as LogSource
