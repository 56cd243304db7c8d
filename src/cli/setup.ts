/** `wirewatch setup`: writes a commented configuration and a hardened systemd unit; `--undo` removes them. */
import path from 'node:path';
import { Option } from 'commander';
import { type Reading, read, wrong } from '../config/option-values.ts';
import type { SettingFlags } from '../config/schema.ts';
import { anyText, toggle, type ValuesOf, value } from '../operations/member.ts';
import { ownCommand } from '../packed.ts';
import { Refused } from '../refused.ts';
import { type SetupFile, type SetupResult, setUp, type UndoChoices, undoSetup } from '../setup/apply-plan.ts';
import { isSystemdThere, SERVICE_CONFIG, type SetupChoices } from '../setup/plan.ts';
import { joined } from '../text-layout.ts';
import { defineCommand } from './command.ts';
import { resolveDataFolder } from './data-folder.ts';
import { type CommonOptions, commonOptions, SETTING_OPTIONS } from './options.ts';

const SERVICE_DATA = '/var/lib/wirewatch';
const DEFAULT_USER = 'wirewatch';

const MEMBERS = {
  // Off with --no-service.
  service: toggle('write the systemd unit even if systemd is not found'),
  user: value(readUser, {
    hint: `user that runs the service, created if missing (default: ${DEFAULT_USER})`,
    placeholder: 'name',
  }),
  dynamic_user: toggle('let systemd create a temporary user while the service runs'),
  program: value(readAbsolutePath, {
    hint: 'path of the program that the service runs (default: this program)',
    placeholder: 'path',
  }),
  root: value(anyText, {
    hint: 'write all files below this folder, to prepare an image or a package (default: /)',
    placeholder: 'dir',
  }),
  dry_run: toggle('show what would be done and the contents of the files; changes nothing'),
  undo: toggle('remove the files that setup created, unless they were modified; never removes data'),
};

type Values = ValuesOf<typeof MEMBERS>;

export const register = defineCommand({
  members: MEMBERS,
  options: [
    new Option('--no-service', 'write only the configuration file, into the data folder'),
    ...SETTING_OPTIONS,
  ],
  ownHelp: {
    data: `$WIREWATCH_DATA, else ${SERVICE_DATA}, or ./wirewatch-data without a service`,
    config: `${SERVICE_CONFIG}, or wirewatch.toml in the data folder without a service`,
  },
  examples: [
    'setup --dry-run',
    'setup --drop /srv/exports --base-url https://detections.example.org',
    'setup --no-service --data ./wirewatch-data',
    'setup --undo',
  ],
  run(values, self) {
    const { undo = false, dry_run: isDry = false } = values;
    const common = commonOptions(self);
    const places = placesOf(values, common);
    const result = undo
      ? undoSetup(undoChoicesOf(values, common, places), isDry)
      : setUp(choicesOf(values, self.opts<SettingFlags>(), places), isDry);
    return {
      value: result,
      text: () => resultText(result, places.root),
      failed: result.not_applied.length > 0,
    };
  },
});

interface Places {
  readonly root: string;
  readonly isService: boolean;
  readonly data: string;
  readonly config: string;
}

function placesOf({ root = '/', service }: Values, common: CommonOptions): Places {
  const folder = path.resolve(root);
  const isService = service ?? isSystemdThere(folder);
  const data = isService
    ? path.resolve(common.data || process.env.WIREWATCH_DATA || SERVICE_DATA)
    : resolveDataFolder(common);
  const config = common.config ?? (isService ? SERVICE_CONFIG : path.join(data, 'wirewatch.toml'));
  return { root: folder, isService, data, config: path.resolve(config) };
}

function choicesOf(values: Values, flags: SettingFlags, { isService, ...places }: Places): SetupChoices {
  const { service, user, dynamic_user: isDynamic = false, program } = values;
  if (isDynamic && user !== undefined)
    throw new Refused('usage', '--user and --dynamic-user cannot be combined: give only one of them.');
  return {
    ...places,
    flags,
    service: isService
      ? {
          user: user ?? DEFAULT_USER,
          isDynamic,
          program: program === undefined ? ownCommand() : [program],
          isProgramNamed: program !== undefined,
        }
      : null,
    isSystemdMissing: service === undefined && !isService,
  };
}

/** Includes the files of a service even if systemd is not found: it may have been set up with --service. */
function undoChoicesOf(values: Values, common: CommonOptions, { root, data, config }: Places): UndoChoices {
  const isService = values.service !== false;
  const configs = isService && common.config === undefined ? new Set([config, SERVICE_CONFIG]) : [config];
  const program = values.program ?? ownCommand().join(' ');
  return { root, data, configs: [...configs], isService, program };
}

function readUser(text: string): Reading<string> {
  return /^[a-z_][a-z0-9_-]{0,30}$/.test(text)
    ? read(text)
    : wrong('a user name: lower-case letters, digits, _ and -');
}

function readAbsolutePath(text: string): Reading<string> {
  return path.isAbsolute(text) ? read(text) : wrong('an absolute path');
}

/** @param root the folder above the files; their paths are those of the finished system */
function resultText({ dry_run, files, not_applied, next }: SetupResult, root: string): string {
  return joined('\n\n', [
    files.map((file) => fileText({ ...file, path: path.join(root, file.path) }, dry_run)).join('\n'),
    ...files.map((file) => dry_run && contentText(file)),
    listed('Not applied', not_applied),
    listed('Next', next),
  ]);
}

function fileText({ what, path, outcome, reason }: SetupFile, isDry: boolean): string {
  const done = isDry && outcome !== 'kept' && outcome !== 'absent' ? `would be ${outcome}` : outcome;
  return `${path} (${what}): ${done}${reason === undefined ? '' : `, ${reason}`}`;
}

function listed(title: string, lines: readonly string[]): string | false {
  return lines.length > 0 && [`${title}:`, ...lines.map((line) => `  ${line}`)].join('\n');
}

function contentText({ path, text }: SetupFile): string | false {
  return text !== undefined && `--- ${path}\n${text}`;
}
