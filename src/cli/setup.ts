/** `wirewatch setup`: writes a commented configuration and a hardened systemd unit, and prints the remaining steps. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { Option } from 'commander';
import { CONFIG_FILE_NAME } from '../config/file.ts';
import { matching } from '../config/option-values.ts';
import type { SettingFlags } from '../config/schema.ts';
import { value } from '../operations/member.ts';
import { ownCommand } from '../packed.ts';
import { setUp } from '../setup/setup.ts';
import { defineCommand, pathMember } from './command.ts';
import { commandFolder, commonOptions, SETTING_OPTIONS } from './options.ts';

const SERVICE_DATA = '/var/lib/wirewatch';
const SERVICE_CONFIG = '/etc/wirewatch/wirewatch.toml';
const UNIT = '/etc/systemd/system/wirewatch.service';
const USER = 'wirewatch';
const USER_NAME = matching(/^[a-z_][a-z0-9_-]{0,30}$/, 'a user name: lower-case letters, digits, _ and -');
/** Exists where systemd runs the system (sd_booted(3)). */
const SYSTEMD = '/run/systemd/system';
/** Under a stricter umask of root, the service could not read its configuration. */
const UMASK = 0o022;

export const register = defineCommand({
  members: {
    unit: pathMember(
      `where to write the systemd unit (default: ${UNIT}, or no unit where systemd does not run)`,
    ),
    user: value(USER_NAME, { hint: `user that runs the service (default: ${USER})`, placeholder: 'name' }),
    program: pathMember('path of the program that the service runs (default: this program)', 'path'),
  },
  options: [
    new Option('--no-service', 'write only the configuration file, into the data folder'),
    ...SETTING_OPTIONS,
  ],
  examples: [
    'setup',
    'setup --drop /srv/exports --base-url https://detections.example.org',
    'setup --no-service --data ./wirewatch-data',
  ],
  run({ unit, user = USER, program: named }, self) {
    process.umask(UMASK);
    const { service: isWanted, ...flags } = self.opts<SettingFlags & { service: boolean }>();
    const common = commonOptions(self);
    const isService = isWanted && (unit !== undefined || existsSync(SYSTEMD));
    const data = isService
      ? path.resolve(common.data || process.env.WIREWATCH_DATA || SERVICE_DATA)
      : commandFolder(self).root;
    const usual = isService ? SERVICE_CONFIG : path.join(data, CONFIG_FILE_NAME);
    const config = path.resolve(common.config || process.env.WIREWATCH_CONFIG || usual);
    const program = named === undefined ? ownCommand() : [path.resolve(named)];
    const service = { unit: path.resolve(unit ?? UNIT), user, program };
    const result = setUp({ data, config, flags, service: isService ? service : null });
    const files = result.files.map(({ what, path, outcome }) =>
      outcome === 'written'
        ? `${path} (${what}): written`
        : `${path} (${what}): it exists, and stays as it is. Edit it, or remove it and run setup again`,
    );
    const next = result.next.map((line) => `  ${line}`);
    return { value: result, text: [...files, '', 'Next:', ...next].join('\n') };
  },
});
