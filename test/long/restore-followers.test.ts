/**
 * Clients that follow the stream across a restore: their copies end as what the server has, nothing older is ever
 * taken for newer, no cursor is refused, and what was revoked stays so.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openReader } from '../../src/store/database.ts';
import { formatMs, HOUR_MS } from '../../src/time.ts';
import {
  type Appliance,
  createKey,
  type Detection,
  putFile,
  showLogOfFailures,
  startAppliance,
} from '../support/appliance.ts';
import { fileName, ndjson, newRow, nextWindowMs, type Row } from '../support/export-files.ts';
import { atRest } from '../support/put-back.ts';

const SETTINGS = { WIREWATCH_SERVER_BASE_URL: 'https://api.example', WIREWATCH_INGEST_QUIET_MS: '0' };
/** Several transactions of 20,000 rows. */
const BACKFILL_ROWS = 41_000;
const POLL_MS = 20;

let appliance: Appliance;
showLogOfFailures(() => appliance?.serving());
beforeEach(async () => {
  appliance = await startAppliance(SETTINGS);
});
afterEach(() => appliance?.stop());

/** A copy as the contract wants it kept: the higher version, and never an older one over a newer. */
class Follower {
  readonly copy = new Map<string, Detection>();
  readonly limit: number;
  /** Whether a higher version may be of an older state on the way, as while files are read again under a raise. */
  isStrict = true;
  #position = `since=${formatMs(Date.now() - HOUR_MS)}`;

  constructor(limit: number) {
    this.limit = limit;
  }

  /** To the end of what is there now. */
  async follow(): Promise<void> {
    for (;;) {
      const answer = await appliance.get(`/v1/detections/changes?${this.#position}&limit=${this.limit}`);
      const text = await answer.text();
      assert.equal(answer.status, 200, text);
      const page: { data: Detection[]; next_cursor: string; has_more: boolean } = JSON.parse(text);
      for (const row of page.data) this.#take(row);
      this.#position = `cursor=${page.next_cursor}`;
      if (!page.has_more) return;
    }
  }

  #take({ event: _, ...row }: Detection): void {
    const known = this.copy.get(row.id);
    if (known !== undefined && known.version === row.version)
      assert.equal(content(row), content(known), `${row.id}: one version, two contents`);
    if (known !== undefined && known.version >= row.version) return;
    const isOlder = known !== undefined && row.last_scored_at < known.last_scored_at;
    assert.ok(
      !this.isStrict || !isOlder,
      `${row.id}: version ${row.version} is older than ${known?.version}`,
    );
    this.copy.set(row.id, row);
  }
}

function content({ last_scored_at: _, exported_at: __, ...shown }: Detection): string {
  return JSON.stringify(shown);
}

/** What the server has, by the period endpoint, stream by stream. */
async function walk(): Promise<Map<string, Detection>> {
  const rows = new Map<string, Detection>();
  const me: { subscriptions: { id: number; data_starts: Record<string, string | null> }[] } = JSON.parse(
    await (await appliance.get('/v1/me')).text(),
  );
  const streams = me.subscriptions.flatMap(({ id, data_starts }) =>
    Object.entries(data_starts).map(([type, from]) => ({ id, type, from })),
  );
  for (const { id, type, from } of streams) {
    if (from === null) continue;
    const query = `from=${from}&to=${formatMs(Date.now())}&limit=1000&subscription_id=${id}&content_type=${type}`;
    for (let cursor: string | null = ''; cursor !== null; ) {
      const answer = await appliance.get(`/v1/detections?${query}${cursor}`);
      const text = await answer.text();
      assert.equal(answer.status, 200, text);
      const page: { data: Detection[]; next_cursor: string | null } = JSON.parse(text);
      for (const row of page.data) rows.set(row.id, row);
      cursor = page.next_cursor === null ? null : `&cursor=${page.next_cursor}`;
    }
  }
  return rows;
}

async function assertCopies(followers: readonly Follower[]): Promise<void> {
  const server = await walk();
  for (const { copy } of followers) {
    assert.equal(copy.size, server.size);
    for (const [id, row] of server) {
      const own = copy.get(id);
      assert.equal(own && content(own), content(row));
    }
    for (const id of copy.keys()) assert.ok(server.has(id), `the server has no ${id}`);
  }
}

/** Rows scored anew, in a window of their own. */
async function rescore(rows: readonly Row[], score: number, more: readonly Row[] = []): Promise<Row[]> {
  const windowMs = nextWindowMs();
  const scored = rows.map((row) => ({ ...row, strength_score: score, last_scored_at: formatMs(windowMs) }));
  const line = await appliance.dropped(fileName('newswire', windowMs), ndjson([...scored, ...more]));
  assert.equal(line.msg, 'file applied');
  return scored;
}

const rowsOf = (count: number, members: Row = {}) => Array.from({ length: count }, () => newRow(members));

/** Ends the program in the middle of a backfill. */
async function killedInBackfill(): Promise<void> {
  const history = rowsOf(BACKFILL_ROWS, { subscription_id: 7002, exported_at: '2026-11-01T00:00:00Z' });
  putFile(appliance.drop, 'newswire.backfill-history.ndjson', ndjson(history));
  for (;;) {
    const db = openReader(join(appliance.data, 'detections.db'));
    const found = db
      .prepare<unknown[], { rows_applied: number }>(
        "SELECT rows_applied FROM ingest_file WHERE outcome = 'applying' AND rows_applied > 0",
      )
      .get();
    db.close();
    if (found !== undefined) break;
    await sleep(POLL_MS);
  }
  await appliance.serving().kill();
}

interface Restoring {
  readonly journal: 'kept' | 'lost';
}

/** Backs up, goes on, restores, goes on; @returns what the restore said */
async function scenario({ journal }: Restoring) {
  const backup = join(appliance.data, '..', 'backup.tar');
  const followers = [new Follower(1000), new Follower(499)];
  const follow = () => Promise.all(followers.map((one) => one.follow()));
  const revokedLater = createKey(appliance.cli, 'agency', '7001');
  let known = rowsOf(40);
  known = await rescore(known, 30);
  await follow();
  await killedInBackfill();
  appliance.cli(['backup', backup]);
  await appliance.restart();
  await atRest(appliance, appliance.serving());
  // What the backup does not know.
  known = await rescore(known, 60, rowsOf(5));
  known = await rescore(known.slice(0, 20), 70).then((again) => [...again, ...known.slice(20)]);
  await appliance.dropped(fileName('imagewire', nextWindowMs()), ndjson(rowsOf(7)));
  const [, keyId = ''] = /_live_([a-z2-7]{12})_/.exec(revokedLater) ?? [];
  appliance.cli(['key', 'revoke', keyId]);
  await follow();
  await assertCopies(followers);
  const before = await walk();

  await appliance.serving().stop();
  if (journal === 'lost') rmSync(join(appliance.data, 'journal'));
  const said = JSON.parse(appliance.cli(['restore', backup, '--replace', '--json']).stdout);
  assert.equal(appliance.cli(['verify', '--json'], { anyStatus: true }).status, 0);
  for (const one of followers) one.isStrict = journal === 'kept';
  await appliance.restart();
  await atRest(appliance, appliance.serving());
  assert.equal((await appliance.get('/v1/me', revokedLater)).status, 401, 'what was revoked stays revoked');
  await follow();
  const afterwards = await walk();
  for (const { copy } of followers) {
    for (const [id, { last_scored_at }] of before)
      assert.ok((copy.get(id)?.last_scored_at ?? '') >= last_scored_at, `${id} is older than before`);
  }
  // And on.
  await rescore(known, 90, rowsOf(3));
  await follow();
  await assertCopies(followers);
  const { ok, findings } = JSON.parse(
    appliance.cli(['verify', '--archive', '--json'], { anyStatus: true }).stdout,
  );
  assert.deepEqual([ok, findings], [true, []]);
  return { said, before, afterwards, known };
}

test('with the journal that was kept, versions come out the same, and followers go on without a gap', async () => {
  const { said, before, afterwards } = await scenario({ journal: 'kept' });
  assert.deepEqual([said.journal, said.versions, said.files_missing], ['continued', 'same', []]);
  assert.ok(said.files_to_read >= 3);
  assert.deepEqual(
    [...afterwards.values()].map(({ id, version }) => [id, version]).sort(),
    [...before.values()].map(({ id, version }) => [id, version]).sort(),
  );
  for (const [id, row] of before) {
    const now = afterwards.get(id);
    assert.equal(now && content(now), content(row));
  }
  assert.ok(!appliance.serving().log.some(({ msg }) => msg.startsWith('versions are raised')));
});

test('without it, versions are raised by 1,000, and said to be; followers keep nothing that is older', async () => {
  const { said, before, afterwards, known } = await scenario({ journal: 'lost' });
  assert.deepEqual([said.journal, said.versions], ['broken', 'raised']);
  assert.match(said.reasons.join(), /the journal that was kept since the backup is not there/);
  assert.ok(
    appliance
      .serving()
      .log.some(({ msg, level }) => level === 'warn' && msg.startsWith('versions are raised')),
  );
  for (const row of known.slice(0, 20)) {
    const id = `t.${row.subscription_id}.${row.source_internal_id}.${row.article_id}`;
    const [was = 0, is = 0] = [before.get(id)?.version, afterwards.get(id)?.version];
    assert.ok(is > was && is > 1000, `${id}: ${was}, then ${is}`);
  }
});
