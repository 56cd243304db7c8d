/** `wirewatch lab clock`, `drop` and the others: clients of the running lab, made from the table of its actions. */

import { type Command, Option } from 'commander';
import { ACTIONS, type ActionName, type Member } from '../lab/actions.ts';
import { CONTROL } from '../lab/control.ts';
import { Refused, reasonOf } from '../refused.ts';
import { dataFolder } from '../store/folder.ts';
import { readRunning } from '../store/noted-address.ts';
import { resolveDataFolder } from './data-folder.ts';
import { addExamples, commonOptions, stateOwn } from './options.ts';
import { print } from './output.ts';

/** The default of --data, as the help says it. */
export const LAB_DATA = '$WIREWATCH_DATA, else ./wirewatch-lab';

const EXAMPLES: Readonly<Record<ActionName, readonly string[]>> = {
  clock: ['clock', 'clock +26h', 'clock 2026-03-29T00:00Z'],
  drop: ['drop', 'drop --rows 3 --age 3d --subscription 7001'],
  late: ['late --rows 3'],
  correct: ['correct t.7001.123.456 --score 12'],
  rescore: ['rescore t.7001.123.456'],
  gap: ['gap newswire --status missing', 'gap imagewire --status failed'],
  'remove-subscription': ['remove-subscription 7002'],
  restore: ['restore'],
  allowance: ['allowance --used', 'allowance --used 0'],
  duplicate: ['duplicate --times 2'],
  'empty-page': ['empty-page'],
  faults: [
    'fault add --status 429 --retry-after 7 --endpoint listChanges --times 3',
    'fault add --cut-after 200',
    'fault add --status 503 --probability 0.1',
  ],
};

export function registerLabCommands(lab: Command): void {
  for (const [name, { summary, argument }] of Object.entries(ACTIONS)) {
    if (name === 'faults') continue;
    const command = lab.command(name).description(optionText(summary));
    state(command, EXAMPLES[name as ActionName]);
    if (name === 'clock') registerClock(command);
    else registerAction(command, name as ActionName, argument);
  }
  const fault = lab
    .command('fault')
    .description(
      'add, list and remove faults of answers. A client can also ask for one itself, with a header such as Prefer: code=503',
    );
  const add = fault.command('add').description(optionText(ACTIONS.faults.summary));
  state(add, EXAMPLES.faults);
  registerAction(add, 'faults', null);
  state(fault.command('list'), ['fault list'])
    .description('list the faults, with how often each has fired')
    .action((_options, self: Command) => ask(self, 'GET', 'faults'));
  state(fault.command('clear'), ['fault clear', 'fault clear f1'])
    .description('remove a fault, or all of them')
    .argument('[id]', 'id of the fault')
    .action((id: string | undefined, _options, self: Command) =>
      ask(self, 'DELETE', id === undefined ? 'faults' : `faults/${encodeURIComponent(id)}`),
    );
  state(lab.command('report'), ['report', 'report --after 120', 'report --clear'])
    .description('print what clients did, request by request, and what fired')
    .option('--after <number>', 'only requests with greater numbers', '0')
    .option('--clear', 'then forget them')
    .action(async ({ after, clear }: { after: string; clear?: boolean }, self: Command) => {
      await ask(self, 'GET', `report?after=${encodeURIComponent(after)}`);
      if (clear === true) await call(self, 'DELETE', 'report');
    });
}

/** What its help says besides. */
function state(command: Command, examples: readonly string[]): Command {
  stateOwn(command, { data: LAB_DATA });
  return addExamples(
    command,
    examples.map((line) => `lab ${line}`),
  );
}

/** `+26h` and `-1d` move it by so much; a time moves it there; nothing shows it. */
function registerClock(command: Command): void {
  command
    .argument(
      '[when]',
      'how far, such as +26h, or where to, such as 2026-03-29T00:00Z (default: show the clock)',
    )
    .allowUnknownOption()
    .action((when: string | undefined, _options, self: Command) => {
      if (when === undefined) return ask(self, 'GET', 'clock');
      return ask(self, 'POST', 'clock', /^\d{4}-/.test(when) ? { to: when } : { advance: when });
    });
}

function registerAction(command: Command, name: ActionName, argument: string | null): void {
  const { body } = ACTIONS[name];
  const members: Readonly<Record<string, Member>> = body.properties;
  const required: readonly string[] = body.required ?? [];
  if (argument !== null) command.argument(`<${argument}>`, optionText(members[argument]?.description ?? ''));
  for (const [member, schema] of Object.entries(members)) {
    if (member === argument) continue;
    const value =
      schema.type === 'boolean' ? '' : member === 'used' ? ' [rows]' : ` <${placeholder(schema)}>`;
    const option = new Option(
      `--${member.replaceAll('_', '-')}${value}`,
      optionText(schema.description ?? ''),
    );
    const choices = (schema.anyOf ?? []).map((one: Member) => one.const);
    if (choices.length > 0) option.choices(choices.map(String));
    command.addOption(option.makeOptionMandatory(required.includes(member)));
  }
  command.action((...given: unknown[]) => {
    const self = given.at(-1) as Command;
    const values: Record<string, unknown> = argument === null ? {} : { [argument]: given[0] };
    const options: Record<string, unknown> = self.opts();
    for (const [member, schema] of Object.entries(members)) {
      const value =
        values[member] ?? options[member.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())];
      // `--used` alone means the default.
      const isDefault = value === undefined || (value === true && schema.type !== 'boolean');
      if (!isDefault) values[member] = typed(value);
    }
    return ask(self, 'POST', name, values);
  });
}

/** Numbers as numbers; the lab says what it expected of all else. */
function typed(value: unknown): unknown {
  return typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value;
}

function placeholder(schema: Member): string {
  const [choice] = schema.anyOf ?? [];
  if (schema.type === 'integer' || schema.type === 'number' || typeof choice?.const === 'number')
    return 'number';
  if (schema.format === undefined) return 'name';
  return schema.format === 'lab-time' || schema.format === 'lab-window' ? 'time' : 'duration';
}

/** A description of the table as the help of a command or an option. */
function optionText(text: string): string {
  return text
    .replace(/\.$/, '')
    .replace(/\. Default: (.*)$/, ' (default: $1)')
    .replace(/^[A-Z](?=[a-z]+ )/, (letter) => letter.toLowerCase());
}

async function ask(command: Command, method: string, path: string, body?: unknown): Promise<void> {
  const value = await call(command, method, path, body);
  print(value, { json: commonOptions(command).json, text: () => JSON.stringify(value, null, 2) });
}

/** @throws Refused `failed` where no lab runs; with what the lab says where it refuses */
function call(command: Command, method: string, path: string, body?: unknown): Promise<unknown> {
  return callLab(runningLab(command).url, method, path, body);
}

/** @throws Refused `failed` where no lab runs */
export function runningLab(command: Command): { readonly root: string; readonly url: string } {
  const root = resolveDataFolder(commonOptions(command), { kind: 'lab' });
  const running = readRunning(dataFolder(root));
  if (running.kind === 'running' && running.url !== null) return { root, url: running.url };
  throw new Refused(
    'failed',
    `no lab runs in ${root}. Start one with: wirewatch lab, or name its folder with --data`,
  );
}

/** @throws Refused with what the lab says where it refuses */
export async function callLab(url: string, method: string, path: string, body?: unknown): Promise<unknown> {
  const sent =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const response = await fetch(`${url}${CONTROL}/${path}`, { method, ...sent }).catch((error: unknown) => {
    throw new Refused('failed', `the lab at ${url} does not answer: ${reasonOf(error)}`, {
      cause: error,
    });
  });
  const answer: unknown = await response.json();
  if (response.ok) return answer;
  const detail =
    typeof answer === 'object' && answer !== null && 'detail' in answer ? String(answer.detail) : '';
  throw new Refused(response.status === 400 ? 'usage' : 'failed', detail);
}
