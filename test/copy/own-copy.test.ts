/** Whose copy a place has, and the states of access.db in it. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, test } from 'node:test';
import { addAccount } from '../../src/auth/accounts.ts';
import { findAccess } from '../../src/auth/spare-copy.ts';
import { accessName, INSTALLATION, ownerOf, readCopiedAccess, SECRET } from '../../src/copy/own-copy.ts';
import { createShipper } from '../../src/copy/ship.ts';
import { openContent } from '../../src/store/database.ts';
import { readLogMark } from '../../src/store/log-mark.ts';
import { noteRole, readRole } from '../../src/store/role.ts';
import { openAccess } from '../support/access.ts';
import { createCopied, type History, rowsFrom } from '../support/history.ts';
import { type MemoryPlace, memoryPlace } from '../support/memory-place.ts';

let history: History;
let place: MemoryPlace;
let changes = 0;
beforeEach(async () => {
  history = await createCopied();
  place = memoryPlace();
  history.apply(rowsFrom(1, 1));
});
afterEach(() => history.delete());

function change(): void {
  changes += 1;
  const db = openAccess(history.folder.root);
  addAccount(db, { id: `account-${changes}`, name: 'Acme', daily_rows: null }, Date.now());
  db.close();
}

const ship = (access = findAccess(history.folder)) =>
  createShipper(place, history.folder).ship(access, readLogMark(history.db()));

/** @returns the refusal, after which the place must be as it was */
async function refused(work: Promise<unknown>): Promise<string> {
  const before = new Map(place.objects);
  const refusal = await work.catch((error: Error) => error);
  assert.deepEqual(place.objects, before);
  return refusal instanceof Error ? refusal.message : 'it was written';
}

test('access.db is written after the log: what it says is in a log that is there', async () => {
  await ship();
  history.apply(rowsFrom(10, 1));
  change();
  const created: string[] = [];
  place.before = (operation, name) => {
    if (operation === 'create') created.push(name.replace(/\/.*/, ''));
  };
  await ship();
  assert.deepEqual(created, ['log', 'access']);
});

test('a place with another secret is left alone', async () => {
  await ship();
  writeFileSync(history.folder.secret, randomBytes(32));
  assert.match(await refused(ship()), /left as it is: its secret is another one/);
});

test('a damaged secret is written again', async () => {
  await ship();
  place.objects.set(SECRET, randomBytes(32));
  await ship();
  assert.deepEqual(place.objects.get(SECRET), readFileSync(history.folder.secret));
});

test('a later state of access.db is left alone; of each, the newest five are kept', async () => {
  const early = findAccess(history.folder);
  for (let count = 0; count < 8; count += 1) {
    change();
    await ship();
  }
  assert.match(await refused(ship(early)), /has changes of accounts and keys that this machine lacks/);
  const kept = [...place.objects.keys()].filter((name) => name.startsWith('access/'));
  assert.equal(kept.length, 5);
  const latest = findAccess(history.folder);
  assert.ok(latest.kind === 'sound');
  assert.deepEqual(await readCopiedAccess(place), { state: latest.state, content: latest.content });
  const content = place.objects.get(kept.at(-1) ?? '') ?? Buffer.alloc(0);
  place.objects.set(accessName(latest.state.change + 1), content);
  await assert.rejects(readCopiedAccess(place), /has another state than its name says/);
});

test('a machine that took over writes nothing over a revocation that it lacks, whatever it changed itself', async () => {
  await ship();
  const restored = findAccess(history.folder);
  const before = readFileSync(history.folder.access);
  change();
  await ship();
  writeFileSync(history.folder.access, before);
  rmSync(history.folder.spare);
  assert.deepEqual(findAccess(history.folder).kind, restored.kind);
  for (let count = 0; count < 3; count += 1) change();
  history.apply(rowsFrom(20, 1));
  assert.match(
    await refused(ship()),
    /lacks\. To take them over, run: wirewatch restore memory --replace\. Name another/,
  );
  // What the writer before a promotion still changed is not carried on.
  noteRole(history.folder, { ...readRole(history.folder), promoted: true });
  await ship();
});

test('another state of access.db with the same number is left alone', async () => {
  await ship();
  const found = findAccess(history.folder);
  assert.ok(found.kind === 'sound');
  using db = openContent(found.content);
  db.exec("INSERT INTO account (id, name, created_at) VALUES ('other', 'Other', 0)");
  const content = db.serialize();
  assert.match(await refused(ship({ ...found, content })), /of another state of this installation/);
});

test('a copy of a newer version is refused, and one whose owner cannot be read', async () => {
  await ship();
  const own = JSON.parse(place.objects.get(INSTALLATION)?.toString() ?? '');
  for (const text of ['', '{}', JSON.stringify({ ...own, version: 9 })]) {
    place.objects.set(INSTALLATION, Buffer.from(text));
    await assert.rejects(ownerOf(place), /installation\.json is damaged, or from a newer version/);
  }
});
