"""Workbooks for tests, written by hand: no test needs a program that writes them."""

from __future__ import annotations

import datetime
import io
import zipfile

TYPES = "http://schemas.openxmlformats.org/"
MAIN, RELATIONS = f"{TYPES}spreadsheetml/2006/main", f"{TYPES}package/2006/relationships"
OFFICE = f"{TYPES}officeDocument/2006/relationships"


def _cell(place, value):
    if isinstance(value, datetime.datetime):
        days = (value - datetime.datetime(1899, 12, 30)) / datetime.timedelta(days=1)
        return f'<c r="{place}" s="1"><v>{days!r}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
    return "" if value is None else f'<c r="{place}"><v>{value}</v></c>'


def xlsx(**sheets):
    """Return a workbook with sheets of rows."""
    overrides = relations = entries = ""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as book:
        for at, (name, rows) in enumerate(sheets.items(), 1):
            kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
            overrides += f'<Override PartName="/xl/worksheets/sheet{at}.xml" ContentType="{kind}"/>'
            relations += f'<Relationship Id="rId{at}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{at}.xml"/>'
            entries += f'<sheet name="{name}" sheetId="{at}" r:id="rId{at}"/>'
            lines = "".join(
                f'<row r="{r}">{"".join(_cell(f"{chr(65 + c)}{r}", value) for c, value in enumerate(row))}</row>'
                for r, row in enumerate(rows, 1)
            )
            sheet = f'<worksheet xmlns="{MAIN}"><sheetData>{lines}</sheetData></worksheet>'
            book.writestr(f"xl/worksheets/sheet{at}.xml", sheet)
        workbook = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
        book.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{TYPES}package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/>'
            f'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{workbook}"/>{overrides}</Types>',
        )
        book.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{RELATIONS}"><Relationship Id="rId1" Type="{OFFICE}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>',
        )
        book.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{entries}</sheets></workbook>'
        )
        styles = f'<Relationship Id="styles" Type="{OFFICE}/styles" Target="styles.xml"/>'
        linked = f'<Relationships xmlns="{RELATIONS}">{relations}{styles}</Relationships>'
        book.writestr("xl/_rels/workbook.xml.rels", linked)
        dated = '<cellXfs count="2"><xf/><xf numFmtId="22" applyNumberFormat="1"/></cellXfs>'
        book.writestr("xl/styles.xml", f'<styleSheet xmlns="{MAIN}">{dated}</styleSheet>')
    return held.getvalue()
