/** Logs with small segments, for tests that copy them. Their entries cannot be applied to a database. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { decodeLines, encodeFrame } from '../../src/log/frame.ts';
import { findTail } from '../../src/log/log-reader.ts';
import { LogWriter } from '../../src/log/log-writer.ts';
import { FrameReader } from '../../src/log/segment.ts';

const SEGMENT_BYTES = 600;

/** Opens or creates a log, and adds entries. */
export function makeLog(folder: string, entries: number): LogWriter {
  const options = { folder, program: '1', segmentBytes: SEGMENT_BYTES };
  const writer = new LogWriter(options, findTail(folder));
  addEntries(writer, entries);
  return writer;
}

export function addEntries(writer: LogWriter, entries: number): void {
  for (let count = 0; count < entries; count += 1) {
    writer.append(`{"row":"${Math.random()}"}\n`);
    writer.commit('', { kind: 'test' }, Date.now());
  }
}

/** Rewrites a segment as a removal does: entries keep their ids but lose rows. @returns the old content */
export function rewrite(path: string): Buffer {
  const before = readFileSync(path);
  const frames: Buffer[] = [];
  const reader = new FrameReader(path);
  for (let frame = reader.next(); frame !== null; frame = reader.next()) {
    const lines = decodeLines(frame.packed);
    if (frame.kind === 'header') frames.push(encodeFrame('header', `${lines.join('\n')}\n`));
    if (frame.kind !== 'commit') continue;
    const { commit } = JSON.parse(lines.at(-1) ?? '');
    const less = { commit: { ...commit, frames: 0, checksum: 0 } };
    frames.push(encodeFrame('commit', `${JSON.stringify(less)}\n`));
  }
  writeFileSync(`${path}.rewritten`, Buffer.concat(frames));
  renameSync(`${path}.rewritten`, path);
  return before;
}
