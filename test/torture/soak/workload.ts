/** Normal operation in rounds: each does the same work, and deletes most of its data at the end. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { formatMs } from '../../../src/time.ts';
import type { Prng } from '../../../src/tools/generate/prng.ts';
import { type Appliance, createKey, type Detection } from '../../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from '../../support/export-files.ts';

export interface Workload {
  /** @throws Error if a check of the round fails */
  round(number: number): Promise<void>;
  /** Ends the follower. */
  end(): Promise<void>;
  readonly counts: Readonly<Record<string, number>>;
}

/** Rows of a round's temporary subscription. */
const PASSING_ROWS = 400;
/** Permanent rows, which every round corrects. */
const LASTING_ROWS = 20;
const BACKUP_EVERY_ROUNDS = 4;
/** On an idle machine, these rounds take the 18 seconds that must pass between two scrubs. */
const SCRUB_EVERY_ROUNDS = 12;
/** The number of past windows for rounds; later rounds use backfills. */
const WINDOW_ROUNDS_MAX = 900;

/** @param folder for backups; @param scrubRecord the record of the last scrub: without it, a scrub is due */
export async function startWorkload(
  appliance: Appliance,
  { prng, folder, scrubRecord }: { prng: Prng; folder: string; scrubRecord: string },
): Promise<Workload> {
  const counts: Record<string, number> = {};
  const count = (what: string, by = 1) => {
    counts[what] = (counts[what] ?? 0) + by;
  };
  const lasting: Row[] = Array.from({ length: LASTING_ROWS }, () => newRow());
  const scores = new Map<string, number>();
  const follower = follow(appliance);

  const drop = async (name: string, rows: readonly Row[]) => {
    const { msg, destination } = await appliance.dropped(name, ndjson(rows));
    if (msg !== 'file applied') throw new Error(`${name}: ${msg}`);
    // Like an operator who moves the archive elsewhere.
    rmSync(join(appliance.drop, String(destination)));
    count('files applied');
  };
  /** The name of a newswire file for the next window, or of a backfill. */
  const nameOf = (number: number, part: string) =>
    number % 2 === 0 && number < WINDOW_ROUNDS_MAX
      ? fileName('newswire', nextWindowMs())
      : `newswire.backfill-r${number}-${part}.ndjson`;

  const correctLasting = async (number: number) => {
    const rows = lasting.map((row) => {
      const strength_score = prng.below(101);
      scores.set(idOf(row), strength_score);
      return {
        ...row,
        strength_score,
        last_scored_at: formatMs(Date.parse(String(row.last_scored_at)) + number * 1000),
      };
    });
    await drop(nameOf(number, 'lasting'), rows);
    count('corrections', rows.length);
    await follower.has((seen) => [...scores].every(([id, score]) => seen.get(id)?.strength.score === score));
  };

  return {
    counts,
    async round(number) {
      await correctLasting(number);
      await passSubscription(appliance, 100_000 + number, (rows) => drop(nameOf(number, 'passing'), rows));
      count('keys made and revoked');
      count('removals');
      if (number % BACKUP_EVERY_ROUNDS === 1) {
        appliance.cli(['backup', join(folder, 'backup')]);
        count('backups');
      }
      if (number % SCRUB_EVERY_ROUNDS === 2) {
        rmSync(scrubRecord, { force: true });
        await appliance
          .serving()
          .logged('a scrub', ({ msg }) => msg === 'detections.db was compared with the log');
        count('scrubs');
      }
      for (const line of appliance.serving().takeLog()) {
        if (line.level === 'error' || line.level === 'fatal')
          throw new Error(`logged: ${JSON.stringify(line)}`);
      }
    },
    end: () => follower.end(),
  };
}

/** Adds a subscription, drops its rows, reads them with a new key, revokes the key and removes the subscription. */
async function passSubscription(
  appliance: Appliance,
  subscription: number,
  drop: (rows: readonly Row[]) => Promise<void>,
): Promise<void> {
  const { cli } = appliance;
  cli(['subscription', 'add', `${subscription}`, '--account', 'agency']);
  const key = createKey(cli, 'agency', `${subscription}`);
  const rows = Array.from({ length: PASSING_ROWS }, () => newRow({ subscription_id: subscription }));
  await drop(rows);
  const read = await readAll(appliance, key);
  const missing = rows.filter((row) => !read.has(idOf(row)));
  if (read.size !== rows.length || missing.length > 0)
    throw new Error(`subscription ${subscription}: ${read.size} detections were read of ${rows.length}`);
  cli(['key', 'revoke', key.split('_')[2] ?? '', '--yes']);
  const { status } = await appliance.get('/v1/me', key);
  if (status !== 401) throw new Error(`subscription ${subscription}: its revoked key got ${status}`);
  cli(['subscription', 'remove', `${subscription}`, '--yes']);
}

interface Follower {
  /** Resolves when the condition holds for the followed detections. */
  has(condition: (seen: ReadonlyMap<string, Detection>) => boolean): Promise<void>;
  end(): Promise<void>;
}

const FOLLOW_WAIT_SECONDS = 5;
/** Much longer than a file takes. */
const FOLLOW_PATIENCE_MS = 300_000;

/** Follows the stream of the permanent rows with waiting requests, and keeps the newest version of each. */
function follow(appliance: Appliance): Follower {
  const seen = new Map<string, Detection>();
  let isEnded = false;
  let onPage = () => {};
  let place = `since=${new Date().toISOString()}`;
  const run = async () => {
    while (!isEnded) {
      const response = await fetch(`${appliance.serving().url}/v1/detections/changes?${place}&limit=1000`, {
        headers: { authorization: `Bearer ${appliance.key}`, prefer: `wait=${FOLLOW_WAIT_SECONDS}` },
      });
      const body = await response.text();
      if (response.status !== 200) throw new Error(`the follower got ${response.status}: ${body}`);
      const { data, next_cursor } = JSON.parse(body);
      for (const detection of data) {
        const { id, version } = detection;
        if ((seen.get(id)?.version ?? 0) >= version)
          throw new Error(`${id}: version ${version} was received again`);
        seen.set(id, detection);
      }
      place = `cursor=${next_cursor}`;
      onPage();
    }
  };
  const running = run();
  // The next `has` reports the error.
  running.catch(() => {});
  return {
    has(condition) {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new Error('the follower did not get the corrections')),
          FOLLOW_PATIENCE_MS,
        );
        running.catch(reject);
        onPage = () => {
          if (!condition(seen)) return;
          clearTimeout(timer);
          onPage = () => {};
          resolve();
        };
        onPage();
      });
    },
    async end() {
      isEnded = true;
      await running;
    },
  };
}

/** The ids of all detections that a key reads on the stream since ten minutes ago. */
async function readAll(appliance: Appliance, key: string): Promise<Set<string>> {
  const ids = new Set<string>();
  let place = `since=${new Date(Date.now() - 600_000).toISOString()}`;
  for (;;) {
    const response = await appliance.get(`/v1/detections/changes?${place}&limit=150`, key);
    const { data, has_more, next_cursor } = JSON.parse(await response.text());
    for (const { id } of data) ids.add(id);
    if (!has_more) return ids;
    place = `cursor=${next_cursor}`;
  }
}
