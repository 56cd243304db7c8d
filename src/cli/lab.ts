/** `wirewatch lab`: runs an appliance for tests of clients, with a clock, a feed and answers that tests set. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { parseKey } from '../auth/key.ts';
import { beginMovableClock, now } from '../clock.ts';
import { type Reading, read, wrong } from '../config/option-values.ts';
import { SAMPLE_SUBSCRIPTIONS } from '../generate/rows.ts';
import { playScenario, readScenario } from '../lab/scenario.ts';
import { nearest } from '../nearest.ts';
import { parseDuration, parseLabTime } from '../operations/lab-members.ts';
import { anyText, type ValuesOf, value } from '../operations/member.ts';
import { Refused } from '../refused.ts';
import { dataFolder, writeWhole } from '../store/folder.ts';
import { DAY_MS, formatMs } from '../time.ts';
import { defineCommand } from './command.ts';
import { LAB_KEY_FILE } from './data-folder.ts';
import { LAB_DATA, registerExam } from './lab-exam.ts';
import { seededKey, startLab } from './lab-start.ts';
import { operationGroup } from './operation-command.ts';
import { commonOptions, LISTENING_OPTIONS, readPath, stateOwn } from './options.ts';
import { print } from './output.ts';
import { operateHere, type Serving } from './serving.ts';

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
  const { seed, key_expires, ready_file } = options;
  const steps = options.scenario === undefined ? [] : readScenario(options.scenario);
  const removeReadyFile = () => {
    if (ready_file !== undefined) rmSync(ready_file, { force: true });
  };
  // Left by an earlier lab, it would announce this one too early.
  removeReadyFile();
  // Before any thread starts, which inherits the clock.
  beginMovableClock(options.clock ?? Date.now());
  let key = options.key ?? '';
  const subscriptions = SAMPLE_SUBSCRIPTIONS.map(({ id }) => ({ id, content_types: null }));
  const started = await startLab(command, 'lab', {
    seed,
    keys(prefix) {
      key ||= seededKey(prefix, seed);
      const expires_at = key_expires === undefined ? null : now() + key_expires;
      return [{ key, name: 'lab', subscriptions, expires_at }];
    },
    drop: (root) => join(root, 'drop'),
    fill: (feed) => feed.dropMonth(),
    onStop: removeReadyFile,
  });
  if (started === null) return null;
  const { serving, lab, ended } = started;
  serving.showLog();
  lab.onMoved = playScenario(
    steps,
    ({ path, given }) => operateHere(serving.appliance, path, given),
    (step, err) => serving.log.error({ err, step }, 'a step of the scenario failed'),
  );
  await introduce(command, serving, key, options);
  await lab.feed.writePhotos();
  await ended;
  return null;
}

async function introduce(
  command: Command,
  { appliance, config }: Serving,
  key: string,
  { key_file, ready_file }: LabStart,
): Promise<void> {
  const { url } = appliance;
  const folder = dataFolder(config.dataFolder);
  const { url: link } = await operateHere<{ url: string }>(appliance, 'console');
  const shown = { url, key, now: formatMs(now()), console: link, pid: process.pid, data: folder.root };
  // For the exam.
  writeWhole(join(folder.root, LAB_KEY_FILE), `${key}\n`);
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
