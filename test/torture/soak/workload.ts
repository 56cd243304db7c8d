/** Normal operation in rounds: each does the same work, and deletes most of its data at the end. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { formatMs } from '../../../src/time.ts';
import type { Prng } from '../../../src/tools/generate/prng.ts';
import { type Appliance, createKey } from '../../support/appliance.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs, type Row } from '../../support/export-files.ts';
import { Follower, fresh, type Get } from '../../support/followers.ts';
import { until } from '../../support/until.ts';

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
) {
  const counts: Record<string, number> = {};
  const count = (what: string, by = 1) => {
    counts[what] = (counts[what] ?? 0) + by;
  };
  const lasting: Row[] = Array.from({ length: LASTING_ROWS }, () => newRow());
  const scores = new Map<string, number>();
  const follower = new Follower();

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
    // It waits until the rows come.
    const waiting = follower.follow(getAs(appliance, appliance.key, { prefer: 'wait=60' }));
    await Promise.all([waiting, drop(nameOf(number, 'lasting'), rows)]);
    count('corrections', rows.length);
    await until('the follower to have the corrections', async () => {
      await follower.follow(getAs(appliance, appliance.key));
      return [...scores].every(([id, score]) => follower.copy.get(id)?.strength.score === score);
    });
  };

  return {
    counts,
    /** @throws Error if a check of the round fails */
    async round(number: number): Promise<void> {
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
  const { copy: read } = await fresh(getAs(appliance, key));
  const missing = rows.filter((row) => !read.has(idOf(row)));
  if (read.size !== rows.length || missing.length > 0)
    throw new Error(`subscription ${subscription}: ${read.size} detections were read of ${rows.length}`);
  cli(['key', 'revoke', key.split('_')[2] ?? '', '--yes']);
  const { status } = await appliance.get('/v1/me', key);
  if (status !== 401) throw new Error(`subscription ${subscription}: its revoked key got ${status}`);
  cli(['subscription', 'remove', `${subscription}`, '--yes']);
}

/** Requests of a client with a key; a failed one is an error. */
function getAs(appliance: Appliance, key: string, headers: Readonly<Record<string, string>> = {}): Get {
  return async (path) => {
    const response = await fetch(`${appliance.serving().url}${path}`, {
      headers: { authorization: `Bearer ${key}`, ...headers },
    });
    const body = await response.text();
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${body}`);
    return JSON.parse(body);
  };
}
