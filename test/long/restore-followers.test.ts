/**
 * Clients of the program after an older data folder was copied back: one that is ahead shows it, an alert says so, and
 * what was lost is made good once. Disasters of every kind, in any order, are in restore-random and torture-histories.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { formatMs } from '../../src/time.ts';
import { sharedAppliance } from '../support/appliance.ts';
import { fileName, idOf, ndjson, newRows, nextWindowMs, type Row } from '../support/export-files.ts';
import { Follower, getAs, settle } from '../support/followers.ts';
import { copyFolder, testFolder } from '../support/test-folder.ts';

const appliance = await sharedAppliance();
const archive = join(appliance.drop, 'archive');

const get = getAs(appliance.serving, appliance.key);
const ingest = (rows: readonly Row[]) =>
  appliance.dropped(fileName('newswire', nextWindowMs()), ndjson(rows));
const rescored = (rows: readonly Row[], strength_score: number) =>
  rows.map((row) => ({ ...row, strength_score, last_scored_at: formatMs(nextWindowMs()) }));
const alerts = () => appliance.serving().log.filter(({ alert }) => alert === 'end of log lost').length;

for (const isReadFirst of [false, true])
  test(`a client that is ahead shows it${isReadFirst ? ', also after files were read' : ''}`, async () => {
    const [behind, caughtUp, ahead] = [new Follower(7), new Follower(), new Follower(3)];
    const rows = newRows(12);
    await ingest(rows);
    await behind.follow(get, 1);
    await ingest(rescored(rows.slice(0, 6), 40));
    await Promise.all([caughtUp.follow(get), ahead.follow(get)]);
    await appliance.serving().stop();
    const folder = testFolder();
    copyFolder(appliance.data, join(folder, 'data'));
    await appliance.restart();
    await ingest([...rescored(rows.slice(0, 5), 50), ...newRows(2)]);
    await ahead.follow(get);
    await appliance.serving().stop();
    // The archive is on another disk: what the copy has not read is read again.
    copyFolder(archive, join(folder, 'archive'));
    rmSync(appliance.data, { recursive: true });
    copyFolder(join(folder, 'data'), appliance.data);
    copyFolder(join(folder, 'archive'), archive);
    await appliance.restart();
    if (isReadFirst) await ingest([...rescored(rows.slice(1, 4), 55), ...newRows(2)]);
    for (const client of [behind, caughtUp]) await client.follow(get);
    assert.equal(alerts(), 0, 'those who are not ahead prove nothing');
    await ahead.follow(get);
    await appliance.serving().logged('the alert', ({ alert }) => alert === 'end of log lost');
    await ingest([...rescored(rows, 60), ...newRows(2)]);
    const clients = [behind, caughtUp, ahead];
    const lost = () => [...ahead.copy.keys()];
    let fresh = await settle(clients, get);
    while (!lost().every((id) => fresh.copy.has(id))) fresh = await settle(clients, get);
    const { version = 0 } = fresh.copy.get(idOf(rows[0] ?? {})) ?? {};
    assert.ok(version > 1000 && version < 3000, `raised once by each test: ${version}`);
    assert.equal(alerts(), 1);
  });
