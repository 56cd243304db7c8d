/** `wirewatch lab exam`: plays bad days to a client of the running lab, and grades it. */
import { exec } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { LabName } from '../operations/lab.ts';
import { anyText, whole } from '../operations/member.ts';
import { type Operation, pathOf } from '../operations/operation.ts';
import { operationAt } from '../operations/table.ts';
import { failed, reasonOf } from '../refused.ts';
import { readRunning } from '../store/noted-address.ts';
import { DAY_MS, formatMs, SECOND_MS } from '../time.ts';
import { clientProcess } from '../tools/lab/client-process.ts';
import type { Copied } from '../tools/lab/evidence.ts';
import { playExam } from '../tools/lab/exam.ts';
import { type Finding, gradeClient } from '../tools/lab/exam-grades.ts';
import { EXAMINER } from '../tools/lab/exam-watch.ts';
import { parseJson } from '../tools/pull/api.ts';
import { subcommand } from './command.ts';
import { operate } from './operate.ts';
import { anyFolder, LAB_KEY_FILE } from './options.ts';

const COPY_BYTES_MAX = 1024 * 1024 * 1024;
const PATIENCE_SECONDS_DEFAULT = 60;
const PATIENCE_SECONDS_MAX = 3600;
const OUTCOMES = { passed: 'passed', failed: 'FAILED', not_tested: 'not tested', advice: 'advice' } as const;

export const registerExam = subcommand('exam', 'play a day of bad luck to your client, and grade it', {
  members: {
    client: anyText(
      'start your client with this command, kill it and start it again; it gets BASE_URL, KEY and SINCE in its environment (default: you run it)',
      'command',
    ),
    copy: anyText(
      'print the copy of your client with this command: a line of JSON a detection, with id and version',
      'command',
    ),
    patience: whole(
      1,
      PATIENCE_SECONDS_MAX,
      `how long the client may take for each act (default: ${PATIENCE_SECONDS_DEFAULT})`,
      'seconds',
    ),
  },
  examples: ['lab exam --client ./run-client --copy ./print-copy'],
  async run({ client, copy, patience = PATIENCE_SECONDS_DEFAULT }, command) {
    // Each operation returns what its caller in the exam names.
    const ask = async <Answer>(name: LabName, given: object) =>
      (await operate(command, operationOf(`lab ${name}`), given)).value as Answer;
    const { now } = await ask<{ now: string }>('clock', {});
    const folder = anyFolder(command, 'lab');
    const key = readFileSync(join(folder.root, LAB_KEY_FILE), 'utf8').trim();
    const running = readRunning(folder);
    const url = running.kind === 'running' ? running.url : null;
    if (url === null) throw failed(`the lab in ${folder.root} has just ended. Start it again.`);
    const since = formatMs(Date.parse(now) - DAY_MS);
    const env = { ...process.env, BASE_URL: url, KEY: key, SINCE: since };
    const started = client === undefined ? null : clientProcess(client, env);
    const stop = async () => {
      // Before the client is killed, which the exam would start again.
      await ask('fault clear', {}).catch(() => {});
      await started?.kill();
      process.exit(1);
    };
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop);
    announce(`BASE_URL=${url} KEY=${key} SINCE=${since}`);
    if (started === null)
      announce('Start your client now, with an empty copy. Have it ask every few seconds.');
    const evidence = await playExam({
      ask,
      removeSubscription: (id) => operate(command, operationOf('subscription remove'), { id }, 'lab'),
      read: (target) => readApi(`${url}${target}`, key),
      client: started,
      copy: copy === undefined ? null : () => readCopy(copy, env),
      patienceMs: patience * SECOND_MS,
      onAct: (name) => announce(`${name} …`),
    });
    const findings = gradeClient(evidence);
    const passed = !findings.some(({ outcome }) => outcome === 'failed');
    const value = { passed, requests: evidence.requests.length, findings };
    return { value, text: shown(findings, passed), failed: !passed };
  },
});

function operationOf(name: string): Operation {
  const operation = operationAt(pathOf({ name }));
  if (operation === null) throw new Error(`there is no operation ${name}`);
  return operation;
}

function shown(findings: readonly Finding[], passed: boolean): string {
  const lines = findings.flatMap(({ outcome, means, detail, documentation, requests }) => {
    const head = `${OUTCOMES[outcome].padEnd(12)}${means}`;
    const seen = requests.length === 0 ? '' : ` Requests: ${requests.slice(0, 10).join(', ')}.`;
    const rest = [detail !== '' && `${detail}.`, outcome === 'failed' && `See ${documentation}.${seen}`];
    return [head, ...rest.filter((line) => line !== false).map((line) => `${' '.repeat(12)}${line}`)];
  });
  const verdict = passed
    ? 'The client keeps the rules that were tested.'
    : 'The client does not keep all rules. "wirewatch lab report" prints the requests.';
  return [...lines, '', verdict].join('\n');
}

async function readApi<Answer>(target: string, key: string): Promise<Answer> {
  const headers = { authorization: `Bearer ${key}`, 'user-agent': EXAMINER };
  const response = await fetch(target, { headers });
  if (response.ok) return (await response.json()) as Answer;
  throw failed(`the exam cannot read ${target}: status ${response.status}`);
}

/** On stderr: stdout is for the findings. */
function announce(text: string): void {
  process.stderr.write(`${text}\n`);
}

/**
 * Runs the command that prints the copy: a line of JSON for each detection, with id and version.
 * @throws Refused `failed` if it fails or prints anything else
 */
async function readCopy(command: string, env: NodeJS.ProcessEnv): Promise<Copied> {
  const { stdout } = await promisify(exec)(command, { env, maxBuffer: COPY_BYTES_MAX }).catch(
    (error: unknown) => {
      throw failed(`--copy: the command failed: ${reasonOf(error)}`);
    },
  );
  const versions = new Map<string, number>();
  const repeated = new Set<string>();
  for (const [index, line] of stdout.split('\n').entries()) {
    if (line.trim() === '') continue;
    const { id, version } = Object(parseJson(line));
    if (typeof id !== 'string' || !Number.isSafeInteger(version))
      throw failed(
        `--copy: line ${index + 1}: expected one detection a line, such as {"id": "t.7001.1.2", "version": 3}`,
      );
    if (versions.has(id)) repeated.add(id);
    versions.set(id, Math.max(Number(version), versions.get(id) ?? 0));
  }
  return { versions, repeated };
}
