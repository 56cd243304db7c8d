/** `wirewatch setup`: writes a commented configuration and a hardened systemd unit; `--undo` removes them. */
import path from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { ownCommand } from '../packed.ts';
import { Refused } from '../refused.ts';
import { type SetupFile, type SetupResult, setUp, type UndoChoices, undoSetup } from '../setup/apply-plan.ts';
import { isSystemdThere, SERVICE_CONFIG, type SetupChoices } from '../setup/plan.ts';
import { resolveDataFolder } from './data-folder.ts';
import { addExamples, addSettingFlags, commonOptions, settingFlags, stateOwn } from './options.ts';
import { print } from './output.ts';

const SERVICE_DATA = '/var/lib/wirewatch';
const DEFAULT_USER = 'wirewatch';

export function register(command: Command): void {
  command
    .option('--service', 'write the systemd unit even if systemd is not found')
    .option('--no-service', 'write only the configuration file, into the data folder')
    .option(
      '--user <name>',
      `user that runs the service, created if missing (default: ${DEFAULT_USER})`,
      userName,
    )
    .option('--dynamic-user', 'let systemd create a temporary user while the service runs')
    .option(
      '--program <path>',
      'path of the program that the service runs (default: this program)',
      absolutePath,
    )
    .option('--root <dir>', 'write all files below this folder, to prepare an image or a package', '/')
    .option('--dry-run', 'show what would be done and the contents of the files; changes nothing')
    .option('--undo', 'remove the files that setup created, unless they were modified; never removes data')
    .action((_options, self: Command) => {
      const { json } = commonOptions(self);
      const { undo, dryRun } = self.opts();
      const isDry = dryRun === true;
      const result = undo === true ? undoSetup(undoChoicesOf(self), isDry) : setUp(choicesOf(self), isDry);
      const { root } = placesOf(self);
      print(result, { json, text: () => resultText(result, root) });
      if (result.not_applied.length > 0) process.exitCode = 1;
    });
  addSettingFlags(command);
  stateOwn(command, {
    data: `$WIREWATCH_DATA, else ${SERVICE_DATA}, or ./wirewatch-data without a service`,
    config: `${SERVICE_CONFIG}, or wirewatch.toml in the data folder without a service`,
  });
  addExamples(command, [
    'setup --dry-run',
    'setup --drop /srv/exports --base-url https://detections.example.org',
    'setup --no-service --data ./wirewatch-data',
    'setup --undo',
  ]);
}

function choicesOf(command: Command): SetupChoices {
  const options: Record<string, unknown> = command.opts();
  const { root, isService, data, config } = placesOf(command);
  const isDynamic = options.dynamicUser === true;
  if (isDynamic && options.user !== undefined)
    throw new Refused('usage', '--user and --dynamic-user cannot be combined: give only one of them.');
  const user = typeof options.user === 'string' ? options.user : DEFAULT_USER;
  const named = typeof options.program === 'string' ? options.program : null;
  const program = named === null ? ownCommand() : [named];
  return {
    root,
    data,
    config,
    flags: settingFlags(command),
    service: isService ? { user, isDynamic, program, isProgramNamed: named !== null } : null,
    isSystemdMissing: options.service === undefined && !isService,
  };
}

/** Includes the files of a service even if systemd is not found: it may have been set up with --service. */
function undoChoicesOf(command: Command): UndoChoices {
  const { root, data, config } = placesOf(command);
  const isService = command.opts().service !== false;
  const isNamed = commonOptions(command).config !== undefined;
  const configs = isService && !isNamed ? new Set([config, SERVICE_CONFIG]) : [config];
  const { program } = command.opts();
  const own = typeof program === 'string' ? [program] : ownCommand();
  return { root, data, configs: [...configs], isService, program: own.join(' ') };
}

function placesOf(command: Command): { root: string; isService: boolean; data: string; config: string } {
  const common = commonOptions(command);
  const options: Record<string, unknown> = command.opts();
  const root = path.resolve(String(options.root));
  const isService = typeof options.service === 'boolean' ? options.service : isSystemdThere(root);
  const data = isService
    ? path.resolve(common.data || process.env.WIREWATCH_DATA || SERVICE_DATA)
    : resolveDataFolder(common);
  const config = common.config ?? (isService ? SERVICE_CONFIG : path.join(data, 'wirewatch.toml'));
  return { root, isService, data, config: path.resolve(config) };
}

function userName(value: string): string {
  if (!/^[a-z_][a-z0-9_-]{0,30}$/.test(value))
    throw new InvalidArgumentError('Expected a user name: lower-case letters, digits, _ and -.');
  return value;
}

function absolutePath(value: string): string {
  if (!path.isAbsolute(value)) throw new InvalidArgumentError('Expected an absolute path.');
  return value;
}

/** @param root the folder above the files; their paths are those of the finished system */
function resultText({ dry_run, files, not_applied, next }: SetupResult, root: string): string {
  const parts = [
    files.map((file) => fileText({ ...file, path: path.join(root, file.path) }, dry_run)).join('\n'),
    ...(dry_run ? files.map(contentText).filter((text) => text !== '') : []),
    ...(not_applied.length === 0 ? [] : [`Not applied:\n${not_applied.map((one) => `  ${one}`).join('\n')}`]),
    ...(next.length === 0 ? [] : [`Next:\n${next.map((line) => `  ${line}`).join('\n')}`]),
  ];
  return parts.join('\n\n');
}

function fileText({ what, path, outcome, reason }: SetupFile, isDry: boolean): string {
  const done = isDry && outcome !== 'kept' && outcome !== 'absent' ? `would be ${outcome}` : outcome;
  return `${path} (${what}): ${done}${reason === undefined ? '' : `, ${reason}`}`;
}

function contentText({ path, text }: SetupFile): string {
  return text === undefined ? '' : `--- ${path}\n${text}`;
}
