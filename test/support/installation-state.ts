/** The state of an installation on disk, running or killed: waiting files, alerts, log, detections. */
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { AlertDocument } from '../../src/health/alert-texts.ts';
import { applyingFiles } from '../../src/ingest/files/file-record.ts';
import { isObject } from '../../src/is-object.ts';
import { parse } from '../../src/log/format.ts';
import { entriesAfter } from '../../src/log/log-reader.ts';
import { findTail } from '../../src/log/torn-end.ts';
import { openDatabase } from '../../src/store/database.ts';
import { LogDamage } from '../../src/store/log-errors.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import type { Installation } from './appliance.ts';
import type { LogLine } from './program.ts';
import { until } from './until.ts';

/** Names of files that ingest has not moved to their final folder. */
export function filesWaiting(drop: string): string[] {
  // In the order in which a file moves through these folders, so that none is missed.
  const dropped = readdirSync(drop).filter((name) => /^(newswire|imagewire)\./.test(name));
  return [...dropped, ...readdirSync(join(drop, '.taken'))];
}

/** The open alerts of the appliance that runs on a data folder, from its memory. */
export async function alertsOf({ data }: Pick<Installation, 'data'>): Promise<AlertDocument[]> {
  const asked = { socketPath: join(data, 'control.sock'), path: '/operations/alert-list', method: 'POST' };
  const [response] = await once(request({ ...asked, agent: false }).end(), 'response');
  return JSON.parse(await text(response)).value;
}

/** @returns names of the open alerts */
export const openAlertsOf = async (installation: Pick<Installation, 'data'>): Promise<string[]> =>
  (await alertsOf(installation)).map(({ name }) => name);

/** Waits until every file is ingested and in its final folder. */
export const untilIdle = (installation: Pick<Installation, 'data' | 'drop'>): Promise<void> =>
  until('ingest to be idle', () => isIdle(installation));

/** Whether every file is in its final folder and what it brought can be read: that may have to wait for the copy. */
export const isIdle = (installation: Pick<Installation, 'data' | 'drop'>): boolean =>
  filesWaiting(installation.drop).length === 0 && !isBehind(installation);

/** Whether the database lacks entries of its log, or a backfill is unfinished. */
function isBehind({ data }: Pick<Installation, 'data'>): boolean {
  if (!existsSync(join(data, 'detections.db'))) return true;
  using db = openDatabase(join(data, 'detections.db'), 'read');
  try {
    const { last } = findTail(join(data, 'log'));
    return applyingFiles(db).length > 0 || readLogMark(db)?.id !== last?.id;
  } catch (error) {
    // An entry that is completed between two reads looks like damage. What is damaged stays so, and is waited for in vain.
    if (error instanceof LogDamage) return true;
    throw error;
  }
}

/** A file's record in the log. */
export interface LoggedFile {
  readonly number: number;
  readonly name: string;
  readonly outcome: string;
  readonly destination: string | null;
  readonly sha256: string | null;
  readonly rows_applied: number;
}

export const isErrorLine = ({ level }: LogLine): boolean => level === 'error' || level === 'fatal';

/** Every file record in the log, in order: one for each state of a file. */
export function loggedFiles(data: string): LoggedFile[] {
  const files: LoggedFile[] = [];
  for (const { part } of entriesAfter(join(data, 'log'), null)) {
    for (const logged of part.lines()) {
      const line = parse(logged);
      if (isObject(line) && line.put === 'ingest_file') files.push(JSON.parse(JSON.stringify(line.row)));
    }
  }
  return files;
}

/** Where the last record of each file says that it is, below the drop folder. */
export function loggedDestinations(data: string): string[] {
  const last = new Map(loggedFiles(data).map((record) => [record.number, record]));
  return [...last.values()].flatMap(({ destination }) => destination ?? []);
}
