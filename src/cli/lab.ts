/** `wirewatch lab`: runs an appliance for tests of clients, with a clock, a feed and answers that tests set. */
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { LabParts } from '../appliance.ts';
import { createKey } from '../auth/key-form.ts';
import type { KeyTerms } from '../auth/keys.ts';
import { beginMovableClock, now } from '../clock.ts';
import { CONFIG_FILE_NAME } from '../config/file.ts';
import type { Config } from '../config/load.ts';
import { bootIngestThread } from '../ingest/threads/ingest-client.ts';
import { parseLabTime, time } from '../operations/lab.ts';
import { anyText } from '../operations/member.ts';
import { misconfigured } from '../refused.ts';
import { type DataFolder, dataFolder, ensureFolder, writeWhole } from '../store/folder.ts';
import { takeServeLocks } from '../store/locks.ts';
import { requireOwner } from '../store/owner.ts';
import { SECRET_BYTES } from '../store/secret.ts';
import { DAY_MS, formatMs } from '../time.ts';
import { SAMPLE_ACCOUNT, SAMPLE_SUBSCRIPTIONS } from '../tools/generate/rows.ts';
import type { Feed } from '../tools/lab/feed.ts';
import { createLab } from '../tools/lab/lab.ts';
import { playScenario, readScenario } from '../tools/lab/scenario.ts';
import { defineCommand, pathMember } from './command.ts';
import { configOf } from './installation.ts';
import { registerExam } from './lab-exam.ts';
import { operationGroup } from './operation-command.ts';
import { LAB_FILE, LAB_KEY_FILE, LISTENING_OPTIONS } from './options.ts';
import { print } from './output.ts';
import { operateHere, serveAppliance, untilSignal } from './serving.ts';

const SEED_DEFAULT = '1';

export function register(command: Command): void {
  operationGroup('lab')(command);
  for (const own of command.commands) {
    if (own.name() === 'fault') own.description('add, list and remove faults of answers');
    // `-1d` is no option.
    if (own.name() === 'clock') own.allowUnknownOption();
  }
  registerExam(command);
  registerLab(command);
}

const registerLab = defineCommand({
  members: {
    seed: anyText(`seed of the detections and the key: a number or any text (default: ${SEED_DEFAULT})`),
    key_file: pathMember('write the API key to this file, for clients'),
    clock: time('what the clock shows at the start, such as 2026-03-29T00:00Z'),
    ready_file: pathMember('write url and key to this file, as JSON, when the lab is ready'),
    scenario: pathMember(
      'play a script of times and steps, as JSON or TOML; see "wirewatch manual testing-your-client"',
    ),
  },
  options: LISTENING_OPTIONS,
  examples: [
    'lab --port 8080 --seed 7 --key-file key.txt',
    'lab clock +26h',
    'lab drop --rows 3 --age 3d',
    'lab fault add --status 429 --retry-after 7 --endpoint listChanges --times 3',
  ],
  async run(options, command) {
    const { seed = SEED_DEFAULT, key_file, ready_file } = options;
    const steps = options.scenario === undefined ? [] : readScenario(options.scenario);
    const removeReadyFile = () => {
      if (ready_file !== undefined) rmSync(ready_file, { force: true });
    };
    // Left by an earlier lab, it would announce this one too early.
    removeReadyFile();
    const subscriptions = SAMPLE_SUBSCRIPTIONS.map(({ id }) => ({ id, content_types: null }));
    const started = await startLab(command, 'lab', {
      seed,
      clockMs: parseLabTime(options.clock ?? '') ?? Date.now(),
      keys: [{ name: 'lab', subscriptions }],
      fill: (feed) => feed.dropMonth(),
    });
    if (started === null) return null;
    const { serving, lab, key, stopping, ended } = started;
    const { appliance, config, log } = serving;
    stopping.addEventListener('abort', removeReadyFile);
    serving.showLog();
    lab.onMoved = playScenario(
      steps,
      ({ path, given }) => operateHere(appliance, path, given),
      (step, err) => log.error({ err, step }, 'a step of the scenario failed'),
    );
    const { url } = appliance;
    const { url: link } = await operateHere<{ url: string }>(appliance, 'console');
    const data = config.dataFolder;
    const shown = { url, key, now: formatMs(now()), console: link, pid: process.pid, data };
    if (key_file !== undefined) writeWhole(key_file, `${key}\n`);
    if (ready_file !== undefined) writeWhole(ready_file, `${JSON.stringify(shown)}\n`);
    print(command, { value: shown, text: introductionText(shown) });
    await ended;
    return null;
  },
});

function introductionText(shown: Readonly<Record<'url' | 'key' | 'now' | 'console', string>>): string {
  const { url, key, console: link } = shown;
  return `
The lab is running: ${url}    (clock: ${shown.now})
Key: ${key}
Console: ${link}

The change stream:
  curl -s -H 'Authorization: Bearer ${key}' '${url}/v1/detections/changes?since=${formatMs(now() - DAY_MS)}'
Move the clock, drop detections, have the next three requests fail, see what your client did:
  wirewatch lab clock +26h
  wirewatch lab drop --rows 3
  wirewatch lab fault add --status 429 --retry-after 7 --endpoint listChanges --times 3
  wirewatch lab report
The same by HTTP, for tests, without a session (${new URL(link).origin}/openapi-admin.json describes it):
  curl -s -X POST -H 'Content-Type: application/json' -d '{"rows": 3}' '${url}/operations/lab-drop'
Press Ctrl-C to stop. The next start begins from scratch.
`;
}

type LabKind = 'lab' | 'demo';

type LabKeyTerms = Pick<KeyTerms, 'name' | 'subscriptions'>;
export type LabKey = ReturnType<typeof createKey> & LabKeyTerms;

interface LabOptions {
  readonly seed: string;
  /** What the clock shows at the start; default: the time. */
  readonly clockMs?: number;
  readonly keys: readonly LabKeyTerms[];
  /** Drops the files that it begins with, while it starts. */
  readonly fill: (feed: Feed) => Promise<void>;
}

/**
 * @returns `key`: the first one; `stopping` is aborted when a signal stops it, and `ended` resolves when it has; null if
 *   one did before it was ready
 * @throws Refused `configuration` for a folder with other content
 */
export async function startLab(command: Command, kind: LabKind, options: LabOptions) {
  const { seed } = options;
  // Before any thread starts, which inherits the clock.
  beginMovableClock(options.clockMs ?? Date.now());
  const ingestThread = bootIngestThread();
  const settings = configOf(command, kind);
  // Anyone who knows the seed of a lab knows its key: it holds sample data only.
  const bytes = kind === 'lab' ? (length: number) => seeded(`${length}`, seed, length) : undefined;
  const keys = options.keys.map((terms) => ({ ...createKey(settings.keys.prefix, bytes), ...terms }));
  const key = keys[0]?.key ?? '';
  const config = labConfig(settings, kind, keys);
  const folder = dataFolder(config.dataFolder);
  requireOwner(folder);
  await beginAnew(folder, kind);
  // Photo addresses and cursors follow from the seed, too. A demonstration may have an export of its user.
  if (kind === 'lab') writeWhole(folder.secret, seeded('secret', seed, SECRET_BYTES));
  // For the exam.
  writeWhole(join(folder.root, LAB_KEY_FILE), `${key}\n`);
  const lab = createLab(seed, config, kind);
  for (const own of [config.ingest.drop, config.photos.folder]) mkdirSync(own, { recursive: true });
  const filled = lab.fill(options.fill);
  const intervene = (parts: LabParts) => lab.join(parts);
  const serving = await serveAppliance(config, kind, { ingestThread, graceMs: 0, intervene });
  const stop = new AbortController();
  const stopping = stop.signal;
  const ended = untilSignal(serving, () => stop.abort());
  const ready = Promise.all([serving.appliance.readable, filled]).then(() => lab.rested());
  await unlessStopped(stopping, [ready, ended]);
  if (!stopping.aborted) return { serving, lab, key, keys, stopping, ended };
  await ended;
  return null;
}

/** Waits for the first of them. What a stop leaves undone is no failure. */
export async function unlessStopped(stopping: AbortSignal, work: readonly Promise<unknown>[]): Promise<void> {
  await Promise.race(work).catch((error: unknown) => {
    if (!stopping.aborted) throw error;
  });
}

const seeded = (what: string, seed: string, length: number): Buffer =>
  hash('sha512', `wirewatch lab ${what} ${seed}`, 'buffer').subarray(0, length);

/**
 * Files of a lab are complete when they appear, so they need no quiet time. Nor does it look for them more often than an
 * installation: each operation has the folder scanned, and files of its user are announced by the file system.
 */
function labConfig(config: Config, kind: LabKind, keys: readonly LabKey[]): Config {
  // Whatever the environment sets: a lab writes to its own folder only.
  const drop = kind === 'lab' ? join(config.dataFolder, 'drop') : config.ingest.drop;
  const own = { place: 'the sample agency', account_id: SAMPLE_ACCOUNT.id };
  return {
    ...config,
    ingest: { ...config.ingest, drop, quiet_ms: 0 },
    photos: { folder: join(config.dataFolder, 'photos') },
    copy: { ...config.copy, to: '', standby: false },
    // The command refuses the folder of a lab.
    verify: { every_hours: 0 },
    preseed: {
      accounts: [{ ...own, ...SAMPLE_ACCOUNT }],
      subscriptions: SAMPLE_SUBSCRIPTIONS.map((subscription) => ({ ...own, ...subscription })),
      keys: keys.map(({ id, prefix, hash, name, subscriptions }) => {
        return { ...own, id, prefix, hash, name, subscriptions, scopes: ['detections:read'] };
      }),
    },
  };
}

async function beginAnew(folder: DataFolder, kind: LabKind): Promise<void> {
  const { root } = folder;
  const mark = `{"made_by":"wirewatch ${kind}"}\n`;
  const markFile = join(root, LAB_FILE);
  const there = existsSync(root) ? readdirSync(root) : [];
  const isOwn = existsSync(markFile) && readFileSync(markFile, 'utf8') === mark;
  if (there.some((name) => name !== CONFIG_FILE_NAME) && !isOwn)
    throw misconfigured(
      `${root} is not empty and not a folder of "wirewatch ${kind}", which would delete what is in it. Name another folder with --data.`,
    );
  ensureFolder(folder);
  writeWhole(markFile, mark);
  const release = await takeServeLocks(folder, () => {});
  const kept = [folder.lock, folder.serveLock, folder.stateLock, markFile, join(root, CONFIG_FILE_NAME)];
  for (const path of there.map((name) => join(root, name)))
    if (!kept.includes(path)) rmSync(path, { recursive: true, force: true });
  release();
}
