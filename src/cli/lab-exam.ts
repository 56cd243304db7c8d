/** `wirewatch lab exam`: plays bad days to a client of the running lab, and grades it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import { EXAMINER, playExam } from '../lab/exam.ts';
import { clientProcess, readCopy } from '../lab/exam-client.ts';
import { type Finding, gradeClient } from '../lab/exam-grades.ts';
import { Refused } from '../refused.ts';
import { DAY_MS, formatMs, SECOND_MS } from '../time.ts';
import { LAB_KEY_FILE } from './data-folder.ts';
import { callLab, LAB_DATA, runningLab } from './lab-commands.ts';
import { addExamples, commonOptions, integerValue, stateOwn } from './options.ts';
import { print, WIDTH_DEFAULT, wrapped } from './output.ts';

const PATIENCE_SECONDS_DEFAULT = 120;
const PATIENCE_SECONDS_MAX = 3600;
const OUTCOMES = { passed: 'passed', failed: 'FAILED', not_tested: 'not tested', advice: 'advice' } as const;

interface ExamFlags {
  readonly client?: string;
  readonly copy?: string;
  readonly patience?: number;
}

export function registerExam(command: Command): void {
  command
    .description('play an hour of bad days to your client, and grade it')
    .option(
      '--client <command>',
      'start your client with this command, kill it and start it again; it gets BASE_URL, KEY and SINCE in its environment (default: you run it)',
    )
    .option(
      '--copy <command>',
      'print the copy of your client with this command: a line of JSON a detection, with id and version',
    )
    .option(
      '--patience <seconds>',
      `how long the client may take for each act (default: ${PATIENCE_SECONDS_DEFAULT})`,
      integerValue(1, PATIENCE_SECONDS_MAX),
    )
    .action((flags: ExamFlags, self: Command) => examine(self, flags));
  stateOwn(command, { data: LAB_DATA, json: 'print the findings as JSON' });
  addExamples(command, ['lab exam --client ./run-client --copy ./print-copy']);
}

async function examine(command: Command, { client, copy, patience }: ExamFlags): Promise<void> {
  const { root, url } = runningLab(command);
  const key = readFileSync(join(root, LAB_KEY_FILE), 'utf8').trim();
  const ask = (method: string, path: string, body?: unknown) => callLab(url, method, path, body);
  const { now } = (await ask('GET', 'clock')) as { now: string };
  const since = formatMs(Date.parse(now) - DAY_MS);
  const env = { ...process.env, BASE_URL: url, KEY: key, SINCE: since };
  const started = client === undefined ? null : clientProcess(client, env);
  const stop = () => {
    void started?.kill().then(() => process.exit(1));
    if (started === null) process.exit(1);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop);
  announce(`BASE_URL=${url} KEY=${key} SINCE=${since}`);
  if (started === null) announce('Start your client now, with an empty copy. Have it ask every few seconds.');
  const evidence = await playExam({
    ask,
    read: (target) => readApi(`${url}${target}`, key),
    client: started,
    restart: askForRestart,
    copy: copy === undefined ? null : () => readCopy(copy, env),
    patienceMs: (patience ?? PATIENCE_SECONDS_DEFAULT) * SECOND_MS,
    onAct: (name) => announce(`${name} …`),
  });
  const findings = gradeClient(evidence);
  const passed = !findings.some(({ outcome }) => outcome === 'failed');
  print(
    { passed, requests: evidence.requests.length, findings },
    { json: commonOptions(command).json, text: () => shown(findings, passed), colours: COLOURS },
  );
  if (!passed) process.exitCode = 1;
}

const COLOURS = { FAILED: 'red', passed: 'green', advice: 'yellow' } as const;

function shown(findings: readonly Finding[], passed: boolean): string {
  const lines = findings.flatMap(({ outcome, means, detail, documentation, requests }) => {
    const head = `${OUTCOMES[outcome].padEnd(12)}${means}`;
    if (detail === '') return [head];
    const rest = wrapped(`${detail}.`, WIDTH_DEFAULT, ' '.repeat(12));
    if (outcome !== 'failed') return [head, ...rest];
    const seen = requests.length === 0 ? '' : ` Requests: ${requests.slice(0, 10).join(', ')}.`;
    return [head, ...rest, ...wrapped(`See ${documentation}.${seen}`, WIDTH_DEFAULT, ' '.repeat(12))];
  });
  const verdict = passed
    ? 'The client keeps the rules that were tested.'
    : 'The client does not keep all rules. "wirewatch lab report" prints the requests.';
  return [...lines, '', verdict].join('\n');
}

async function readApi(target: string, key: string): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}`, 'user-agent': EXAMINER };
  const response = await fetch(target, { headers });
  if (response.ok) return response.json();
  throw new Refused('failed', `the exam cannot read ${target}: status ${response.status}`);
}

async function askForRestart(): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return false;
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  await lines.question('Kill your client now (kill -9), and press Enter. Then start it again. ');
  lines.close();
  return true;
}

/** On stderr: stdout is for the findings. */
function announce(text: string): void {
  process.stderr.write(`${text}\n`);
}
