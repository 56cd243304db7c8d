/** Drops export files on a running appliance and checks their outcome. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExportName } from '../../src/detection/content-type.ts';
import type { Form } from '../../src/exports/file-name.ts';
import { formatMs } from '../../src/time.ts';
import type { Appliance } from './appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from './export-files.ts';
import type { LogLine } from './program.ts';

/** @param appliance returns the current appliance */
export function exportTrials(appliance: () => Appliance) {
  const inDrop = (...names: string[]) => join(appliance().drop, ...names);
  const reasonBeside = (destination: unknown) =>
    JSON.parse(readFileSync(inDrop(`${destination}.reason.json`), 'utf8'));

  /** Drops a file for its own window. */
  function dropped(form: Form, content: string | Buffer, name: ExportName = 'newswire'): Promise<LogLine> {
    return appliance().dropped(fileName(name, nextWindowMs(), form), content);
  }

  /** Drops a file that must be applied, and checks its row count. */
  async function applied(form: Form, content: string | Buffer, rows: readonly Row[]): Promise<LogLine> {
    const line = await dropped(form, content);
    assert.equal(line.msg, 'file applied', JSON.stringify(line));
    assert.equal(line.rows, rows.length);
    for (const row of rows.slice(-20)) assert.ok(await appliance().detection(idOf(row)), idOf(row));
    return line;
  }

  /** Drops a file that must fail; @returns its reason file */
  async function failed(form: Form, content: string | Buffer, name?: ExportName) {
    const line = await dropped(form, content, name);
    assert.equal(line.msg, 'file failed', JSON.stringify(line));
    const path = inDrop(String(line.destination));
    assert.ok(readFileSync(path).equals(Buffer.from(content)), 'the failed file must be unchanged');
    return reasonBeside(line.destination);
  }

  /** Drops a file with these rows, which must be applied; @returns the last row's detection, as the API shows it */
  async function detectionOf(rows: readonly Row[], name?: ExportName, key?: string) {
    const line = await dropped('ndjson', ndjson(rows), name);
    assert.equal(line.msg, 'file applied', JSON.stringify(line));
    const detection = await appliance().detection(idOf(rows.at(-1) ?? {}, name), key);
    assert.ok(detection !== null);
    return detection;
  }

  /** Drops a file with a good row and then this one, which must fail; @returns the errors of its reason file */
  async function reasonsFor(row: Row, name?: ExportName) {
    const good = newRow();
    const reason = await failed('ndjson', ndjson([good, row]), name);
    const stored = await appliance().detection(idOf(good, name));
    assert.equal(stored, null, 'no row of a failed file may be stored');
    assert.equal(reason.errors_total, reason.errors.length);
    for (const error of reason.errors) assert.equal(error.line, 2);
    return reason.errors;
  }

  /** Drops another file and waits for it: when it is applied, earlier files have been scanned. */
  async function ingestAnother(): Promise<void> {
    assert.equal((await dropped('ndjson', ndjson([newRow()]))).msg, 'file applied');
  }

  function windowStatus(exportName: string, windowMs: number): string | undefined {
    const { stdout } = appliance().cli(['window', 'list', exportName, '--limit', '100000', '--json']);
    const windows: { window_start: string; status: string }[] = JSON.parse(stdout);
    return windows.find(({ window_start }) => window_start === formatMs(windowMs))?.status;
  }

  return {
    dropped,
    applied,
    failed,
    detectionOf,
    reasonsFor,
    inDrop,
    reasonBeside,
    ingestAnother,
    windowStatus,
  };
}

export function later(row: Row, members: Row = {}): Row {
  const scored = formatMs(Date.parse(String(row.last_scored_at)) + 60_000);
  return { ...row, last_scored_at: scored, ...members };
}

export const newRows = (count: number) => Array.from({ length: count }, () => newRow());
