/** Two machines of one installation, with a place for the copy and a drop folder that both reach. */
import { join } from 'node:path';
import type { CopyState } from '../../src/store/role.ts';
import { DAY_MS, formatMs } from '../../src/time.ts';
import { createInstallation, type Installation, putFile, type Serving } from './appliance.ts';
import { fileName, ndjson, newRows, nextWindowMs } from './export-files.ts';
import { readerOf } from './lab.ts';
import { testFolder } from './test-folder.ts';

/** @param more settings of both; @param own of the standby */
export function createMachinePair(
  more: Readonly<Record<string, string>> = {},
  own: Readonly<Record<string, string>> = {},
) {
  const work = testFolder();
  const place = join(work, 'copy');
  const drop = join(work, 'drop');
  const settings = {
    WIREWATCH_COPY_TO: place,
    WIREWATCH_INGEST_DROP: drop,
    WIREWATCH_SERVER_BASE_URL: 'https://detections.example.org',
    ...more,
  };
  const one = createInstallation(settings);
  const other = createInstallation({ ...settings, ...own, WIREWATCH_COPY_STANDBY: 'true' });
  return {
    work,
    /** Of the copy. */
    place,
    /** Of both machines. */
    settings,
    /** The writer. */
    one,
    /** Configured as its standby. */
    other,
    /** Drops the file of the next window. @returns its rows */
    drop(count = 2) {
      const rows = newRows(count);
      putFile(drop, fileName('newswire', nextWindowMs()), ndjson(rows));
      return rows;
    },
    remove(): void {
      one.remove();
      other.remove();
    },
  };
}

/** What status says of the copy. */
export const copyOf = ({ cli }: Pick<Installation, 'cli'>): CopyState | null =>
  JSON.parse(cli(['status', '--json']).stdout).copy;

/** The first page of the change stream of the last day. */
const changes = () => `/v1/detections/changes?since=${formatMs(Date.now() - DAY_MS)}&limit=1000`;

export const changesOf = ({ url }: Pick<Serving, 'url'>, key: string): Promise<Response> =>
  readerOf(url, key).get(changes());

/** @throws AssertionError if it is not answered with 200 */
export const changedRows = async <Row>({ url }: Pick<Serving, 'url'>, key: string): Promise<Row[]> =>
  (await readerOf(url, key).read(changes())).data;
