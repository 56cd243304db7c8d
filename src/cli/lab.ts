/** `wirewatch lab`: runs an appliance for tests of clients, with a clock, a feed and answers that tests set. */
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { Appliance } from '../appliance.ts';
import { createKey, parseKey } from '../auth/key.ts';
import { beginMovableClock, now } from '../clock.ts';
import { CONFIG_FILE_NAME } from '../config/file.ts';
import type { Config } from '../config/load.ts';
import { type Reading, read, wrong } from '../config/option-values.ts';
import { addSampleKey, prepareAccount } from '../demo/agency.ts';
import { SAMPLE_SUBSCRIPTIONS } from '../generate/sample-agency.ts';
import { openAccess } from '../history/open-access.ts';
import { bootIngestThread } from '../ingest/threads/ingest-client.ts';
import { Lab } from '../lab/lab.ts';
import { playScenario, readScenario, type Step } from '../lab/scenario.ts';
import { nearest } from '../nearest.ts';
import { parseDuration, parseLabTime } from '../operations/lab.ts';
import { anyText, type ValuesOf, value } from '../operations/member.ts';
import { Refused } from '../refused.ts';
import { writing } from '../store/database.ts';
import { dataFolder, ensureFolder, writeWhole } from '../store/folder.ts';
import { takeServeLocks } from '../store/locks.ts';
import { DAY_MS, formatMs } from '../time.ts';
import { actorOfProcess } from './actor.ts';
import { defineCommand } from './command.ts';
import { LAB_FILE, LAB_KEY_FILE } from './data-folder.ts';
import { LAB_DATA, registerExam } from './lab-exam.ts';
import { operationGroup } from './operation-command.ts';
import { commonOptions, LISTENING_OPTIONS, readPath, stateOwn } from './options.ts';
import { print } from './output.ts';
import { consoleLink, type Serving, serveAppliance, untilSignal } from './serving.ts';

const LAB_MARK = '{"made_by":"wirewatch lab"}\n';

const SEED_DEFAULT = '1';
const FAULT =
  'add, list and remove faults of answers. A client can also ask for one itself, with a header such as Prefer: code=503';
const MEMBERS = {
  seed: value(anyText, {
    hint: `seed of the detections, the key and chance: a number or any text (default: ${SEED_DEFAULT})`,
  }),
  key: value(readWholeKey, { hint: 'the API key (default: one made from the seed)', placeholder: 'key' }),
  key_file: value(readPath, { hint: 'write the API key to this file, for clients', placeholder: 'file' }),
  key_expires: value(readDuration, {
    hint: 'the key expires that long after the start, such as 30d',
    placeholder: 'duration',
  }),
  clock: value(readClock, {
    hint: 'what the clock shows at the start, such as 2026-03-29T00:00Z',
    placeholder: 'time',
  }),
  ready_file: value(readPath, {
    hint: 'write url and key to this file, as JSON, when the lab is ready',
    placeholder: 'file',
  }),
  scenario: value(readPath, {
    hint: 'play a script of times and steps, as JSON or TOML; see "wirewatch manual testing-your-client"',
    placeholder: 'file',
  }),
};

type LabStart = ValuesOf<typeof MEMBERS> & { readonly seed: string };

const registerStart = defineCommand({
  members: MEMBERS,
  options: LISTENING_OPTIONS,
  ownHelp: { data: LAB_DATA },
  examples: [
    'lab --port 8080 --seed 7 --key-file key.txt',
    'lab clock +26h',
    'lab drop --rows 3 --age 3d',
    'lab fault add --status 429 --retry-after 7 --endpoint listChanges --times 3',
  ],
  async run(values, self) {
    const [name] = self.args;
    if (name === undefined) return await start(self, { ...values, seed: values.seed ?? SEED_DEFAULT });
    const near = nearest(
      name,
      self.commands.map((one) => one.name()),
      3,
    );
    const next = near === null ? 'List the commands with: wirewatch lab --help' : `Did you mean ${near}?`;
    throw new Refused('usage', `unknown command "lab ${name}". ${next}`);
  },
});

export function register(command: Command): void {
  operationGroup('lab')(command);
  for (const own of command.commands) {
    for (const one of [own, ...own.commands]) stateOwn(one, { data: LAB_DATA });
    if (own.name() === 'fault') own.description(FAULT);
    // `-1d` is no option.
    if (own.name() === 'clock') own.allowUnknownOption();
  }
  registerExam(command);
  // After the other commands, which would inherit the texts of its help.
  registerStart(command);
  // Otherwise commander reports a mistyped command as an excess argument.
  command.allowExcessArguments();
}

async function start(command: Command, options: LabStart): Promise<null> {
  const steps = options.scenario === undefined ? [] : readScenario(options.scenario);
  const removeReadyFile = () => {
    if (options.ready_file !== undefined) rmSync(options.ready_file, { force: true });
  };
  // Left by an earlier lab, it would announce this one too early.
  removeReadyFile();
  // Before any thread starts, which inherits the clock.
  beginMovableClock(options.clock ?? Date.now());
  let lab: Lab | null = null;
  let key = '';
  let month = Promise.resolve();
  const serving = await serveAppliance(command, 'lab', {
    ingestThread: bootIngestThread(),
    graceMs: 0,
    async prepare(settings) {
      const config = labConfig(settings);
      const root = config.dataFolder;
      await beginAnew(root);
      key = prepareAccess(config, options);
      writeWhole(join(root, LAB_KEY_FILE), `${key}\n`);
      lab = new Lab(options.seed, config);
      mkdirSync(config.ingest.drop, { recursive: true });
      month = lab.dropMonth();
      return config;
    },
    intervene: (parts) => begun(lab).join(parts),
  });
  const running: Lab = begun(lab);
  const ended = untilSignal(serving, removeReadyFile);
  await Promise.all([serving.appliance.readable, month]);
  await running.rested();
  serving.showLog();
  running.onMoved = playScenario(
    steps,
    (step) => playStep(serving.appliance, step),
    (step, err) => serving.log.error({ err, step }, 'a step of the scenario failed'),
  );
  await introduce(command, serving, key, options);
  await running.feed.writePhotos();
  await ended;
  return null;
}

async function playStep({ operate }: Appliance, { path, given }: Step): Promise<void> {
  const { status, body } = await operate({ path, given, way: 'command', by: actorOfProcess() });
  if (status !== 200) throw new Error(JSON.parse(body).detail);
}

/** Files of a lab are complete when they appear, so they need no quiet time. */
function labConfig(config: Config): Config {
  const drop = join(config.dataFolder, 'drop');
  return {
    ...config,
    ingest: { ...config.ingest, drop, quiet_ms: 0, rescan_seconds: 1 },
    // Whatever the environment sets: a lab writes to its own folder only.
    photos: { folder: join(config.dataFolder, 'photos') },
    backup: { ...config.backup, every_minutes: 0 },
  };
}

function isLab(root: string): boolean {
  const path = join(root, LAB_FILE);
  return existsSync(path) && readFileSync(path, 'utf8') === LAB_MARK;
}

/** Empties the folder of an earlier lab. @throws Refused `configuration` for a folder with other content */
async function beginAnew(root: string): Promise<void> {
  const folder = dataFolder(root);
  const there = existsSync(root) ? readdirSync(root) : [];
  if (there.some((name) => name !== CONFIG_FILE_NAME) && !isLab(root)) {
    throw new Refused(
      'configuration',
      `${root} is not empty and not the folder of a lab, which would delete what is in it. Name another folder with --data.`,
    );
  }
  ensureFolder(folder);
  writeWhole(join(root, LAB_FILE), LAB_MARK);
  const release = await takeServeLocks(folder, () => {});
  const kept = [
    folder.lock,
    folder.serveLock,
    folder.stateLock,
    ...[LAB_FILE, CONFIG_FILE_NAME].map((name) => join(root, name)),
  ];
  for (const path of there.map((name) => join(root, name)))
    if (!kept.includes(path)) rmSync(path, { recursive: true, force: true });
  release();
}

/** @returns the key */
function prepareAccess(config: Config, { seed, key: given, key_expires }: LabStart): string {
  using access = openAccess(config.dataFolder, {
    create: true,
    kind: 'lab',
    operation: { kind: 'command', command: 'lab', ...actorOfProcess() },
  });
  const key = given ?? seededKey(config.keys.prefix, seed);
  const nowMs = now();
  const expires_at = key_expires === undefined ? null : nowMs + key_expires;
  const subscriptions = SAMPLE_SUBSCRIPTIONS.map(({ id }) => ({ id, content_types: null }));
  // In one transaction: each transaction is an fsync, and the user waits.
  writing(access, () => {
    prepareAccount(access, nowMs);
    addSampleKey(access, key, { name: 'lab', subscriptions, expires_at }, nowMs);
  });
  return key;
}

/** Anyone who knows the seed knows the key: a lab holds sample data only. */
function seededKey(prefix: string, seed: string): string {
  const bytes = (length: number) =>
    hash('sha512', `wirewatch lab ${length} ${seed}`, 'buffer').subarray(0, length);
  return createKey(prefix, bytes).key;
}

async function introduce(
  command: Command,
  { appliance, config }: Serving,
  key: string,
  { key_file, ready_file }: LabStart,
): Promise<void> {
  const { url } = appliance;
  const folder = dataFolder(config.dataFolder);
  const link = await consoleLink(appliance);
  const shown = { url, key, now: formatMs(now()), console: link, pid: process.pid, data: folder.root };
  if (key_file !== undefined) writeWhole(key_file, `${key}\n`);
  if (ready_file !== undefined) writeWhole(ready_file, `${JSON.stringify(shown)}\n`);
  const curl = `curl -s -H 'Authorization: Bearer ${key}'`;
  const since = formatMs(now() - DAY_MS);
  const text = `
The lab is running: ${url}    (clock: ${shown.now})
Key: ${key}
Console: ${link}

The change stream:
  ${curl} '${url}/v1/detections/changes?since=${since}'
Move the clock, drop detections, have the next three requests fail, see what your client did:
  wirewatch lab clock +26h
  wirewatch lab drop --rows 3
  wirewatch lab fault add --status 429 --retry-after 7 --endpoint listChanges --times 3
  wirewatch lab report
The same by HTTP, for tests, without a session (${new URL(link).origin}/openapi-admin.json describes it):
  curl -s -X POST -H 'Content-Type: application/json' -d '{"rows": 3}' '${url}/operations/lab-drop'
Press Ctrl-C to stop. The next start begins from scratch.
`;
  print(shown, { json: commonOptions(command).json, text });
}

function begun(lab: Lab | null): Lab {
  if (lab === null) throw new Error('the lab was not prepared');
  return lab;
}

function readWholeKey(text: string): Reading<string> {
  return parseKey(text) === null ? wrong('a whole API key, as "wirewatch key generate" prints') : read(text);
}

function readDuration(text: string): Reading<number> {
  const ms = parseDuration(text) ?? 0;
  return ms > 0 ? read(ms) : wrong('a duration such as 90m, 26h or 30d');
}

function readClock(text: string): Reading<number> {
  const ms = parseLabTime(text);
  return ms === null ? wrong('a time between 2001 and 2099 such as 2026-03-29T00:00Z') : read(ms);
}
