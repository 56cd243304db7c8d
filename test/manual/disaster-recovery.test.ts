/**
 * Runs every command of `wirewatch manual disaster-recovery` exactly as written, on two folders that represent two
 * machines. Scripts replace systemd (which starts a process), its users, and rsync if it is not installed. The
 * followers are copies of `wirewatch pull`.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { WINDOW_MS } from '../../src/time.ts';
import { putFile } from '../support/appliance.ts';
import { programCommand } from '../support/command.ts';
import { fileName, ndjson, newRow } from '../support/export-files.ts';
import { topic } from '../support/manual.ts';
import { until } from '../support/until.ts';

const TIMEOUT_MS = 120_000;
const DATA = 'var/lib/wirewatch';
const NAMED = `export WIREWATCH_DATA=/${DATA}\n`;
const SETTINGS = {
  WIREWATCH_SERVER_PORT: '0',
  WIREWATCH_INGEST_QUIET_MS: '20',
  WIREWATCH_INGEST_RESCAN_SECONDS: '0.2',
  WIREWATCH_LIMITS_REQUESTS_PER_MINUTE: '1000000',
};

/** A fake systemctl: enables and disables the service, starts it until it listens, stops it until it has exited. */
const SYSTEMCTL = `
stop() {
  [ -e "$STATE/pid" ] || return 0
  kill "$(cat "$STATE/pid")"
  while kill -0 "$(cat "$STATE/pid")" 2>/dev/null; do sleep 0.05; done
  rm "$STATE/pid"
}
start() {
  wirewatch serve --data "$DATA" --config "$CONFIG" >/dev/null 2>"$STATE/log" &
  echo $! >"$STATE/pid"
  until grep -q '"msg":"listening"' "$STATE/log"; do kill -0 "$(cat "$STATE/pid")"; sleep 0.05; done
}
case "$*" in
  "is-enabled --quiet wirewatch") [ -e "$STATE/enabled" ];;
  "disable wirewatch") rm -f "$STATE/enabled";;
  "disable --now wirewatch") rm -f "$STATE/enabled"; stop;;
  "enable --now wirewatch") touch "$STATE/enabled"; start;;
  "restart wirewatch") touch "$STATE/enabled"; stop; start;;
  daemon-reload) ;;
  *) echo "systemctl $*" >&2; exit 1;;
esac`;

/** A fake `rsync -a [--delete] FROM/ TO/`. */
const RSYNC = `
isExact=no
case "$1 $2" in "-a --delete") isExact=yes; shift 2;; *) [ "$1" = -a ]; shift;; esac
case "$1 $2" in */" "*/) ;; *) exit 1;; esac
mkdir -p "$2"
if [ $isExact = yes ]; then find "$2" -mindepth 1 -delete; fi
cp -a "$1." "$2"`;

/** The page's command blocks, by the comment on their first line. */
const blocks = new Map(
  [...topic('disaster-recovery').matchAll(/^```(?:sh|toml)\n# (.*)\n([\s\S]*?)```$/gm)].map(
    ([, title = '', code = '']) => [title, code] as const,
  ),
);
const used = new Set<string>();
function block(title: string): string {
  used.add(title);
  const code = blocks.get(title);
  assert.ok(code, `the page has no block "${title}"`);
  return code;
}

const work = mkdtempSync(join(tmpdir(), 'wirewatch-disaster-'));
const machines = new Set<Machine>();
/** The machines after the first has failed; copied for each test. */
let dead: Machine;
let ready: Machine;
/** Copies of two clients: one has read the last change of the first machine, one has not. */
let ahead: string;
let behind: string;
let keyFile: string;
/** A file that the first machine read while the share was away. */
let lost: { name: string; content: string };

before(async () => {
  const first = makeMachine('first');
  keyFile = join(work, 'key');
  sh(first, 'wirewatch setup');
  configure(first, block('in /etc/wirewatch/wirewatch.toml'));
  sh(first, block('on the first machine, as root, once'));
  const { key } = addCustomer(first);
  writeFileSync(keyFile, key);
  mkdirSync(join(first.root, DATA, 'photos'));
  await drop(first, recent(3), ndjson([newRow(), newRow(), newRow()]));
  behind = join(work, 'behind.db');
  pull(first, behind, '--full');
  await copied(first);

  const second = makeMachine('second');
  sh(second, block('on the second machine, as root, once'), first);
  sh(second, block('on the second machine, as root, every five minutes'), first);
  const rehearsed = sh(second, block('on the second machine, as root, once a month'), first);
  assert.match(rehearsed, /share.* is intact.*Restored .* 3 detections.*-rehearsal is intact/s);
  assert.ok(!existsSync(join(second.root, DATA, 'detections.db')));

  lost = { name: recent(2), content: ndjson([newRow(), newRow()]) };
  const share = join(first.root, 'mnt/share');
  renameSync(share, `${share}-away`);
  await drop(first, lost.name, lost.content);
  ahead = join(work, 'ahead.db');
  cpSync(behind, ahead);
  pull(first, ahead);
  kill(first);
  renameSync(`${share}-away`, share);
  [dead, ready] = [first, second];
});
after(() => {
  for (const machine of machines) kill(machine);
  rmSync(work, { recursive: true, force: true });
});

describe('a second machine takes over by the manual', () => {
  test('from its copies, when the first has died', async () => {
    const second = copyOf(ready, 'takes-over');
    const output = sh(second, block('on the second machine, as root, when the first is off'), dead);
    assert.match(output, /versions are raised by 1,000/);
    assert.match(output, /^Everything is OK\.$/m);
    await drop(second, lost.name, lost.content);
    await assertFollowersGoOn(second);

    // From now on, the timers that updated it must not change it.
    const detections = join(second.root, DATA, 'drop', 'archive');
    const there = readdirSync(detections, { recursive: true });
    sh(second, block('on the second machine, as root, every five minutes'), dead);
    assert.deepEqual(readdirSync(detections, { recursive: true }), there);
  });

  test('from the disk of the first, and nothing is lost', async () => {
    const second = copyOf(ready, 'has-the-disk');
    const title = 'on the second machine, as root, with the disk of the first mounted on /mnt';
    sh(second, block(title).replaceAll('/mnt/', `${copyOf(dead, 'disk').root}/`));
    await assertFollowersGoOn(second);
    assert.ok(Math.max(...versionsOf(ahead)) < 1000);
  });

  test('as planned, and nothing is lost', async () => {
    const [first, second] = [copyOf(dead, 'is-moved'), copyOf(ready, 'is-moved-to')];
    sh(first, 'systemctl enable --now wirewatch');
    sh(first, block('on the first machine, as root'));
    sh(second, block('on the second machine, as root, when the service has ended on the first'), first);
    await assertFollowersGoOn(second);
    assert.ok(Math.max(...versionsOf(ahead)) < 1000);
  });
});

test('every command of the page was run', () => {
  assert.deepEqual([...used].sort(), [...blocks.keys()].sort());
  const fences = topic('disaster-recovery').match(/^```(?!text$)\w+$/gm);
  assert.equal(fences?.length, blocks.size);
});

/** A new file must reach every follower, and each must end with the same rows as a new client. */
async function assertFollowersGoOn(machine: Machine): Promise<void> {
  await drop(machine, recent(1), ndjson([newRow(), newRow()]));
  const fresh = join(machine.root, 'fresh.db');
  pull(machine, fresh, '--full');
  const expected = contentOf(fresh);
  assert.equal(expected.length, 7);
  for (const follower of [ahead, behind]) {
    const copy = join(machine.root, 'follower.db');
    cpSync(follower, copy);
    pull(machine, copy);
    assert.deepEqual(contentOf(copy), expected, follower);
  }
}

interface Machine {
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Creates a folder that represents a machine's disk, with the commands that the page runs. */
function makeMachine(name: string): Machine {
  return equip({ root: join(work, name), env: {} });
}

function copyOf({ root }: Machine, name: string): Machine {
  // Keeps the modes of folders.
  assert.equal(spawnSync('cp', ['-a', root, join(work, name)]).status, 0);
  return equip({ root: join(work, name), env: {} });
}

function equip({ root }: Machine): Machine {
  const bin = join(root, 'bin');
  const state = join(root, 'run');
  mkdirSync(bin, { recursive: true });
  mkdirSync(state, { recursive: true });
  const { command, args, options } = programCommand([]);
  const own = [command, ...args].map((word) => `'${word}'`).join(' ');
  const commands: Record<string, string> = {
    wirewatch: `if [ "$1" = setup ]; then unset WIREWATCH_DATA WIREWATCH_CONFIG; shift; set -- setup --config "$CONFIG" --unit '${root}/etc/systemd/system/wirewatch.service' --program /bin/wirewatch "$@"; fi
exec ${own} "$@"`,
    systemctl: SYSTEMCTL,
    runuser: '[ "$1 $2 $3" = "-u wirewatch --" ]; shift 3; exec "$@"',
    useradd: 'case "$*" in "--system "*" wirewatch") ;; *) exit 1;; esac',
    chown: 'case "$*" in *wirewatch:*) ;; *) exit 1;; esac',
    ...(spawnSync('rsync', ['--version']).status === 0 ? {} : { rsync: RSYNC }),
  };
  for (const [file, code] of Object.entries(commands)) {
    writeFileSync(join(bin, file), `#!/bin/sh\nset -eu\n${code}\n`);
    chmodSync(join(bin, file), 0o755);
  }
  const machine = {
    root,
    env: {
      ...options.env,
      ...SETTINGS,
      // The configuration has the path of a real machine.
      WIREWATCH_COPY_TO: join(root, 'mnt/share/wirewatch'),
      STATE: state,
      DATA: join(root, DATA),
      CONFIG: join(root, 'etc/wirewatch/wirewatch.toml'),
      PATH: `${bin}${delimiter}${process.env.PATH}`,
    },
  };
  for (const folder of ['var/lib', 'mnt/share', 'etc']) mkdirSync(join(root, folder), { recursive: true });
  machines.add(machine);
  return machine;
}

/** Runs shell lines on a machine, with paths and the name of the other machine mapped to the folders. */
function sh(machine: Machine, code: string, first?: Machine): string {
  const script = code
    .replaceAll('first:/', `${first?.root}/`)
    .replaceAll('/mnt/share/', `${(first ?? machine).root}/mnt/share/`)
    .replaceAll(/(?<=^|[ =])\/(var\/lib|etc)\//gm, `${machine.root}/$1/`);
  const { status, stdout, stderr } = spawnSync('sh', ['-eu', '-c', script], {
    cwd: work,
    encoding: 'utf8',
    env: machine.env,
    timeout: TIMEOUT_MS,
  });
  assert.equal(status, 0, `${script}\n${stdout}\n${stderr}`);
  return stdout;
}

/** Edits a configuration written by setup. */
function configure({ root }: Machine, lines: string): void {
  const path = join(root, 'etc/wirewatch/wirewatch.toml');
  const [section = '', ...settings] = lines.trim().split('\n');
  const [before = '', rest = ''] = readFileSync(path, 'utf8').split(`${section}\n`);
  const changed = settings.reduce((text, line) => {
    const name = new RegExp(`^${line.split(' ')[0]} = .*$`, 'm');
    assert.match(text, name);
    return text.replace(name, line);
  }, rest);
  writeFileSync(path, `${before}${section}\n${changed}`);
}

function addCustomer(machine: Machine): { key: string } {
  sh(
    machine,
    `${NAMED}wirewatch account add acme --name Acme\nwirewatch subscription add 7001 --account acme`,
  );
  const options = '--account acme --name test --scopes detections:read --subscriptions 7001 --json';
  return JSON.parse(sh(machine, `${NAMED}wirewatch key create ${options}`));
}

/** The name of a recent window's file, so that ingest does not count as stalled. */
function recent(windowsAgo: number): string {
  return fileName('newswire', (Math.floor(Date.now() / WINDOW_MS) - windowsAgo) * WINDOW_MS);
}

async function copied(machine: Machine): Promise<void> {
  await until('the copy to be up to date', () => {
    const { copy } = JSON.parse(sh(machine, `${NAMED}wirewatch status --json`));
    return copy.entries_behind === 0 && copy.behind_since === null;
  });
}

/** Drops a file, and waits until it is archived. */
async function drop({ root }: Machine, name: string, content: string): Promise<void> {
  const folder = join(root, DATA, 'drop');
  putFile(folder, name, content);
  const archive = join(folder, 'archive');
  const isThere = () =>
    existsSync(archive) &&
    readdirSync(archive, { recursive: true, encoding: 'utf8' }).some((one) => one.endsWith(name));
  await until(`${name} is archived`, () => isThere() && !existsSync(join(folder, name)));
}

function pull(machine: Machine, into: string, ...more: string[]): void {
  const log = readFileSync(join(machine.root, 'run/log'), 'utf8');
  const [, url = ''] = /"url":"([^"]+)".*"msg":"listening"/.exec(log) ?? [];
  sh(machine, `wirewatch pull --base-url ${url} --key-file ${keyFile} --into ${into} ${more.join(' ')}`);
}

function contentOf(copy: string): unknown[] {
  const db = new DatabaseSync(copy);
  try {
    return db.prepare('SELECT id, version, body FROM detections ORDER BY id').all();
  } finally {
    db.close();
  }
}

function versionsOf(copy: string): number[] {
  return contentOf(copy).map((row) => Number(Object(row).version));
}

/** Kills all processes of a machine, as a power failure does. */
function kill({ root }: Machine): void {
  const path = join(root, 'run/pid');
  if (!existsSync(path)) return;
  try {
    process.kill(Number(readFileSync(path, 'utf8')), 'SIGKILL');
  } catch {
    // It has ended.
  }
  rmSync(path);
}
