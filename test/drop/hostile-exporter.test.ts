/**
 * What a user who may write to the drop folder can do there: it may have rows read, and nothing else. Wirewatch runs as
 * root here, whom no permission would stop.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import {
  inDrop,
  makeOwnFolder,
  OWN_FOLDERS,
  removeIn,
  renameIn,
  writeIn,
} from '../../src/drop/own-folder.ts';
import { AS_OTHER, OTHER_ID } from '../support/another-user.ts';
import { type Appliance, createInstallation, startAppliance } from '../support/appliance.ts';
import { check } from '../support/check.ts';
import { assertFailed } from '../support/command.ts';
import { fileName, idOf, ndjson, newRow, nextWindowMs } from '../support/export-files.ts';
import { alertsOf } from '../support/installation-state.ts';
import { patchedAll } from '../support/patched-fs.ts';
import { until } from '../support/until.ts';
import { words } from '../support/words.ts';

const skip = process.getuid?.() !== 0 && 'only root can act as another user';
const SECRET = 'SECRET\n';

/** `exports` is the drop folder; `secrets` is what the attacker is after, who is another user. */
let place: string;
let exports: string;
let secrets: string;

beforeEach(() => {
  place = fs.mkdtempSync(join(tmpdir(), 'wirewatch-hostile-'));
  fs.chmodSync(place, 0o755);
  exports = join(place, 'exports');
  secrets = join(place, 'secrets');
  fs.mkdirSync(secrets, { mode: 0o700 });
  fs.writeFileSync(join(secrets, 'secret'), SECRET, { mode: 0o600 });
});
afterEach(() => {
  assert.deepEqual(fs.readdirSync(secrets), ['secret']);
  assert.equal(fs.readFileSync(join(secrets, 'secret'), 'utf8'), SECRET);
  fs.rmSync(place, { recursive: true });
});

/** As setup makes it: members of the group write there, and each moves only its own files. */
function makeExports(mode = 0o3770): void {
  fs.mkdirSync(exports);
  fs.chownSync(exports, 0, OTHER_ID);
  fs.chmodSync(exports, mode);
}

const asAttacker = (script: string) =>
  execFileSync('setpriv', [...AS_OTHER, 'sh', '-ec', script], { cwd: exports });

/** Links under every name that Wirewatch could write to for these files. */
function trapsFor(own: string, names: readonly string[]): string {
  const traps = names.flatMap((name) => [name, `${name}.reason.json`, `${name}.skipped.ndjson`]);
  const drafts = names.map((name) => `.${name}.reason.json.tmp`);
  const more = ['skipped-1.ndjson', 'skipped-2.ndjson', 'skipped-3.ndjson', `1.${names[0]}`];
  return [...traps, ...drafts, ...more].map((trap) => `ln -s ${secrets}/secret '${own}/${trap}'`).join('\n');
}

/** The exporter's files are its own, and the group of the folder may read them. */
function drop(name: string, content: string): void {
  const path = join(exports, name);
  fs.writeFileSync(`${path}.part`, content, { mode: 0o640 });
  fs.chownSync(`${path}.part`, OTHER_ID, OTHER_ID);
  fs.renameSync(`${path}.part`, path);
}

/** An appliance on the drop folder, for `await using`. */
const started = () => startAppliance({ WIREWATCH_INGEST_DROP: exports, WIREWATCH_INGEST_BAD_ROWS: 'skip' });

const names = () => [...[1, 2].map(() => fileName('newswire', nextWindowMs())), 'no-export.txt'];
const OUTCOMES = ['file applied', 'file failed', 'file refused'];

async function processAll(running: Appliance, files: readonly string[]): Promise<void> {
  const outcomes = [];
  for (const name of files) outcomes.push((await running.processed(name)).msg);
  assert.deepEqual(outcomes, OUTCOMES);
}

function dropAll([good = '', bad = '', alone = '']: readonly string[]): string {
  const row = newRow();
  drop(good, ndjson([row, { ...newRow(), article_id: -1 }]));
  drop(bad, 'no rows\n'.repeat(200));
  drop(alone, '');
  return idOf(row);
}

/** The alert about the drop folder, once it is open. */
async function complaint({ data }: Appliance): Promise<string> {
  let detail: string | undefined;
  await until('the alert', async () => {
    detail = (await alertsOf({ data })).find(({ name }) => name === 'drop folder not writable')?.detail;
    return detail !== undefined;
  });
  return detail ?? '';
}

test('an own folder of another user: nothing is written, check and the alert name the command', {
  skip,
}, async () => {
  makeExports();
  const files = names();
  for (const own of OWN_FOLDERS) asAttacker(`mkdir -m 777 ${own}\n${trapsFor(own, files)}`);
  await using running = await started();
  const id = dropAll(files);
  const commandFor = (own: string) => `mv ${join(exports, own)} ${join(exports, own)}-before`;
  for (const left = new Set<string>(OWN_FOLDERS); left.size > 0; ) {
    const named = (text: string | null) => [...left].find((own) => text?.includes(commandFor(own)));
    let next: string | undefined;
    await until('the alert for one of them', async () => {
      next = named(await complaint(running));
      return next !== undefined;
    });
    const finding = (await check(running.data, '--drop', exports, '--port', '0')).of('drop folder');
    assert.equal(finding.status, 'bad');
    assert.ok(named(finding.what_to_do), JSON.stringify(finding));
    for (const name of files) assert.ok(fs.existsSync(join(exports, name)), name);
    execFileSync('sh', ['-c', commandFor(next ?? '')]);
    left.delete(next ?? '');
  }
  await processAll(running, files);
  assert.ok(await running.detection(id));

  fs.chmodSync(join(exports, 'failed'), 0o2775);
  const more = names();
  dropAll(more);
  const [command = ''] = /chmod go-w .*\/failed/.exec(await complaint(running)) ?? [];
  assert.ok(!fs.readdirSync(join(exports, 'failed')).some((name) => more.includes(name)));
  execFileSync('sh', ['-c', command]);
  await processAll(running, more);
});

test('what Wirewatch makes in the drop folder is its own, and no other user writes to it', {
  skip,
}, async () => {
  makeExports();
  await using running = await started();
  const files = names();
  dropAll(files);
  await processAll(running, files);
  const made = fs.readdirSync(exports, { recursive: true, encoding: 'utf8' });
  for (const end of [/\.skipped\.ndjson$/m, /\.reason\.json$/m]) assert.match(made.join('\n'), end);
  for (const name of made) {
    const { uid, mode } = fs.lstatSync(join(exports, name));
    // The exporter's own files stay its own.
    if (uid === OTHER_ID) assert.match(name, /(newswire\.[^/]*\.ndjson|no-export\.txt)$/);
    else assert.equal(mode & 0o022, 0, name);
  }
  assert.deepEqual(fs.readdirSync(join(exports, '.taken')), []);
  assert.throws(() => asAttacker('mv failed elsewhere'), /Operation not permitted|Permission denied/);
});

test('a hard link to a file of Wirewatch, or of root, is not read', { skip }, async () => {
  makeExports();
  const name = fileName('newswire', nextWindowMs());
  // Where fs.protected_hardlinks is 0, the exporter can make one.
  fs.linkSync(join(secrets, 'secret'), join(exports, name));
  await using running = await started();
  await running.logged(/ignored in the drop folder/, { name });
  const files = names();
  dropAll(files);
  await processAll(running, files);
  assert.ok(fs.readdirSync(exports).includes(name));
  // The exporter may keep a link to its own files.
  const kept = fileName('newswire', nextWindowMs());
  drop(kept, ndjson([newRow()]));
  fs.linkSync(join(exports, kept), join(place, kept));
  assert.equal((await running.processed(kept)).msg, 'file applied');
});

test('a link that another user can replace does not become the drop folder', { skip }, () => {
  using installation = createInstallation();
  // Of their own, and one like /tmp, in which everybody can replace what is theirs.
  for (const name of ['theirs', 'shared']) {
    exports = join(place, name);
    fs.mkdirSync(exports);
    if (name === 'theirs') fs.chownSync(exports, OTHER_ID, OTHER_ID);
    else fs.chmodSync(exports, 0o1777);
    asAttacker(`ln -s ${secrets} exports`);
    // It has no such address, so that it ends also where it follows the link.
    const ours = ['serve', '--host', '192.0.2.1', '--drop', join(exports, 'exports')];
    const refused = installation.cli(ours, { anyStatus: true });
    assertFailed(refused, 78, /exports is a link that another user can replace\. Set \[ingest\] drop/);
  }
});

const CALLS =
  words(`closeSync fsyncSync fstatSync linkSync lstatSync mkdirSync openSync readlinkSync renameSync
  unlinkSync writeFileSync`);

/** Runs `attack` before the call with this number on files. @returns how many calls there were */
function attackedAt(at: number, attack: () => void, work: () => void): number {
  let calls = 0;
  using _ = patchedAll(fs, CALLS, (call, args) => {
    calls += 1;
    if (calls === at) attack();
    return call(...args);
  });
  try {
    work();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
  }
  return calls;
}

test('a folder that is exchanged before any call leads nowhere', () => {
  const works: Record<string, () => void> = {
    write: () => writeIn(exports, 'failed/note', 'text'),
    read: () =>
      inDrop(exports, 'failed/secret', (path) => assert.notEqual(fs.readFileSync(path, 'utf8'), SECRET)),
    'rename from': () => renameIn(exports, 'failed/secret', '.taken/secret'),
    'rename to': () => renameIn(exports, 'file', 'failed/file'),
    remove: () => removeIn(exports, 'failed/secret'),
    'make a folder': () => makeOwnFolder(exports, 'failed/2026-11-24'),
  };
  // Only root can let the folder around them belong to another user, who can exchange the drop folder itself.
  if (!skip) fs.chownSync(place, OTHER_ID, OTHER_ID);
  for (const [what, work] of Object.entries(works)) {
    for (const exchanged of skip ? ['failed'] : ['failed', '']) {
      for (let at = 1, calls = 1; at <= calls; at += 1) {
        fs.mkdirSync(exports);
        for (const own of ['failed', '.taken']) fs.mkdirSync(join(exports, own));
        fs.writeFileSync(join(exports, 'failed', 'secret'), 'text');
        fs.writeFileSync(join(exports, 'file'), 'text');
        fs.mkdirSync(join(secrets, 'failed'), { mode: 0o700 });
        fs.writeFileSync(join(secrets, 'failed', 'secret'), SECRET);
        const path = join(exports, exchanged);
        const attack = () => {
          fs.renameSync(path, join(place, 'away'));
          fs.symlinkSync(exchanged === '' ? secrets : join(secrets, 'failed'), path);
        };
        calls = attackedAt(at, attack, work);
        const found = fs.readdirSync(secrets, { recursive: true }).sort();
        assert.deepEqual(found, ['failed', 'failed/secret', 'secret'], `${what}, call ${at} of ${calls}`);
        assert.equal(fs.readFileSync(join(secrets, 'failed', 'secret'), 'utf8'), SECRET);
        for (const one of [exports, join(secrets, 'failed'), join(place, 'away')])
          fs.rmSync(one, { recursive: true, force: true });
      }
    }
  }
});
