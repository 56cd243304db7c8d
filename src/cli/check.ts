/** `wirewatch check`: checks the installation and suggests fixes. */
import type { Command } from 'commander';
import { checkInstallation } from '../check/check.ts';
import type { Finding } from '../check/finding.ts';
import type { Config } from '../config/load.ts';
import { counted } from '../counted.ts';
import type { Status } from '../operations/status.ts';
import { STATUS } from '../operations/status-views.ts';
import { reasonIfRefused } from '../refused.ts';
import { defineCommand } from './command.ts';
import { configOf } from './installation.ts';
import { operate } from './operate.ts';
import { commandFolder, SETTING_OPTIONS } from './options.ts';

export const register = defineCommand({
  options: SETTING_OPTIONS,
  examples: ['check', 'check --data /var/lib/wirewatch --config /etc/wirewatch.toml --json'],
  async run(_values, self) {
    const readStatus = async () => (await operate(self, STATUS, {})).value as Status;
    const findings = await checkInstallation(commandFolder(self), configured(self), readStatus);
    const failed = findings.some(({ status }) => status === 'bad');
    return { value: findings, text: findingsText(findings), failed };
  },
});

function configured(command: Command): Config | string {
  try {
    return configOf(command);
  } catch (error) {
    return reasonIfRefused(error);
  }
}

function findingsText(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const indent = ' '.repeat(width + 8);
  const lines = findings.map(({ check, status, detail, what_to_do }) => {
    const shown = `${status.padEnd(4)}  ${check.padEnd(width)}  ${detail.replaceAll('\n', `\n${indent}`)}`;
    return what_to_do === null ? shown : `${shown}\n${indent}-> ${what_to_do}`;
  });
  const count = (wanted: string) => findings.filter(({ status }) => status === wanted).length;
  const [warn, bad] = [count('warn'), count('bad')];
  const end =
    warn + bad === 0 ? 'Everything is OK.' : `${bad} bad, ${counted(warn, 'warning')}, ${count('ok')} OK.`;
  return [...lines, '', end].join('\n');
}
