/** The commands of a running lab, made from the table of its operations: each sends one request. */
import { type Command, Option } from 'commander';
import {
  ACTIONS,
  type Action,
  type ActionName,
  isActionName,
  type Member,
  READINGS,
} from '../lab/actions.ts';
import { CONTROL } from '../lab/control.ts';
import { Refused, reasonOf } from '../refused.ts';
import { dataFolder } from '../store/folder.ts';
import { readRunning } from '../store/noted-address.ts';
import { resolveDataFolder } from './data-folder.ts';
import { addExamples, commonOptions, stateOwn } from './options.ts';
import { print } from './output.ts';

/** The default of --data, as the help says it. */
export const LAB_DATA = '$WIREWATCH_DATA, else ./wirewatch-lab';

export function registerLabCommands(lab: Command): void {
  for (const [name, action] of Object.entries(ACTIONS)) {
    if (!isActionName(name) || name === 'faults') continue;
    const command = addCommand(lab, name, action);
    if (name === 'clock') registerClock(command);
    else registerAction(command, name);
  }
  const fault = lab
    .command('fault')
    .description(
      'add, list and remove faults of answers. A client can also ask for one itself, with a header such as Prefer: code=503',
    );
  stateOwn(fault, { data: LAB_DATA });
  registerAction(addCommand(fault, 'add', ACTIONS.faults), 'faults');
  addCommand(fault, 'list', READINGS['GET faults']).action((_options, self: Command) =>
    ask(self, 'GET', 'faults'),
  );
  addCommand(fault, 'clear', {
    summary: 'Remove a fault, or all of them; print what was removed.',
    examples: ['fault clear', 'fault clear f1'],
  })
    .argument('[id]', 'id of the fault')
    .action((id: string | undefined, _options, self: Command) =>
      ask(self, 'DELETE', id === undefined ? 'faults' : `faults/${encodeURIComponent(id)}`),
    );
  addCommand(lab, 'report', READINGS['GET report'])
    .option('--after <number>', 'only requests with greater numbers', '0')
    .option('--clear', 'then forget them')
    .action(async ({ after, clear }: { after: string; clear?: boolean }, self: Command) => {
      await ask(self, 'GET', `report?after=${encodeURIComponent(after)}`);
      if (clear === true) await callLab(runningLab(self).url, 'DELETE', 'report');
    });
}

function addCommand(to: Command, name: string, { summary, examples }: Pick<Action, 'summary' | 'examples'>) {
  const command = to.command(name).description(optionText(summary));
  stateOwn(command, { data: LAB_DATA });
  const lines = examples.map((line) => `lab ${line}`);
  return addExamples(command, lines);
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

function registerAction(command: Command, name: ActionName): void {
  const { members, required }: Action = ACTIONS[name];
  const [argument] = required;
  for (const [member, schema] of Object.entries(members)) {
    const text = optionText(schema.description ?? '');
    const option = new Option(`${flagOf(member)}${schema.placeholder}`, text);
    const choices = (schema.anyOf ?? []).map((one: Member) => String(one.const));
    if (choices.length > 0) option.choices(choices);
    if (member === argument) command.argument(`<${member}>`, text);
    else command.addOption(option.makeOptionMandatory(required.includes(member)));
  }
  command.action((...parameters: unknown[]) => {
    const self = parameters.at(-1) as Command;
    const values = Object.entries(members).flatMap(([member, { type }]) => {
      const attribute = new Option(flagOf(member)).attributeName();
      const value: unknown = member === argument ? self.args[0] : self.getOptionValue(attribute);
      // `--used` alone means the default.
      const isDefault = value === undefined || (value === true && type !== 'boolean');
      return isDefault ? [] : [[member, typed(value)]];
    });
    return ask(self, 'POST', name, Object.fromEntries(values));
  });
}

function flagOf(member: string): string {
  return `--${member.replaceAll('_', '-')}`;
}

/** Numbers as numbers. The lab checks every value, and its message says what it expected. */
function typed(value: unknown): unknown {
  return typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value;
}

/** A description of the table, as the help of a command or an option. */
function optionText(text: string): string {
  return text
    .replace(/\.$/, '')
    .replace(/\. Default: (.*)$/, ' (default: $1)')
    .replace(/^[A-Z](?=[a-z]+ )/, (letter) => letter.toLowerCase());
}

async function ask(command: Command, method: string, path: string, body?: unknown): Promise<void> {
  const value = await callLab(runningLab(command).url, method, path, body);
  print(value, { json: commonOptions(command).json, text: () => JSON.stringify(value, null, 2) });
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
export async function callLab<Answer>(
  url: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  const sent = body !== undefined && {
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  };
  const response = await fetch(`${url}${CONTROL}/${path}`, { method, ...sent }).catch((cause: unknown) => {
    throw new Refused('failed', `the lab at ${url} does not answer: ${reasonOf(cause)}`, { cause });
  });
  const answer = (await response.json()) as Answer & { readonly detail?: unknown };
  if (response.ok) return answer;
  throw new Refused(response.status === 400 ? 'usage' : 'failed', String(answer.detail ?? ''));
}
