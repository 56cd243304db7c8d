/** What became of export files that were dropped on a running appliance. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatMs } from '../../src/time.ts';
import type { Appliance } from './appliance.ts';
import { fileName, ndjson, newRow, nextWindowMs, type Row } from './export-files.ts';
import { follow, readerOf } from './lab.ts';

/** @param appliance returns the current appliance */
export function exportTrials(appliance: () => Appliance) {
  const inDrop = (...names: string[]) => join(appliance().drop, ...names);
  const reasonBeside = (destination: unknown) =>
    JSON.parse(readFileSync(inDrop(`${destination}.reason.json`), 'utf8'));

  /** Drops another file and waits for it: when it is applied, earlier files have been scanned. */
  async function ingestAnother(): Promise<void> {
    const line = await appliance().dropped(fileName('newswire', nextWindowMs()), ndjson([newRow()]));
    assert.equal(line.msg, 'file applied');
  }

  /** Runs `wirewatch window`. @returns `document`: what it prints as JSON; null: nothing */
  function window(...args: string[]) {
    const { status, stdout, stderr } = appliance().cli(['window', ...args, '--json'], { anyStatus: true });
    return { status, stderr, document: stdout === '' ? null : JSON.parse(stdout) };
  }

  function windowStatus(exportName: string, windowMs: number): string | undefined {
    const windows: { window_start: string; status: string }[] = window(
      ...['list', exportName, '--limit', '100000'],
    ).document;
    return windows.find(({ window_start }) => window_start === formatMs(windowMs))?.status;
  }

  /** Starts at the end of the change stream. @returns lists later changes in order: `id version event` */
  async function followStream(): Promise<() => Promise<string[]>> {
    const reader = readerOf(appliance().serving().url, appliance().key);
    const { cursor } = await follow(reader, `since=${new Date().toISOString()}`);
    return async () => {
      const { rows } = await follow(reader, `cursor=${cursor}`);
      return rows.map(({ id, version, event }) => `${id} ${version} ${event}`);
    };
  }

  return { inDrop, reasonBeside, ingestAnother, window, windowStatus, followStream };
}

export function later(row: Row, members: Row = {}): Row {
  const scored = formatMs(Date.parse(String(row.last_scored_at)) + 60_000);
  return { ...row, last_scored_at: scored, ...members };
}
