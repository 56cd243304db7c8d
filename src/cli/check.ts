/** `wirewatch check`: checks the installation and suggests fixes. */
import type { Command } from 'commander';
import { type Configured, checkInstallation } from '../check/check.ts';
import type { Finding } from '../check/finding.ts';
import { loadConfig } from '../config/load.ts';
import { counted } from '../counted.ts';
import { printable } from '../printable.ts';
import { Refused } from '../refused.ts';
import { resolveDataFolder } from './data-folder.ts';
import { addExamples, addSettingFlags, commonOptions, settingFlags } from './options.ts';
import { print } from './output.ts';

export function register(command: Command): void {
  command.action(async (_options: unknown, self: Command) => {
    const { json } = commonOptions(self);
    const root = resolveDataFolder(commonOptions(self));
    const findings = await checkInstallation({
      root,
      configured: configured(self, root),
      nowMs: Date.now(),
      onProgress: (what) => {
        if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2Kchecking ${printable(what)}`);
      },
    });
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[2K');
    print(findings, {
      json,
      text: () => findingsText(findings),
      colours: { ok: 'green', warn: 'yellow', bad: 'red' },
    });
    if (findings.some(({ status }) => status === 'bad')) process.exitCode = 1;
  });
  addSettingFlags(command);
  addExamples(command, ['check', 'check --data /var/lib/wirewatch --config /etc/wirewatch.toml --json']);
}

function configured(command: Command, dataFolder: string): Configured {
  const { config: file } = commonOptions(command);
  try {
    return {
      kind: 'read',
      config: loadConfig({ flags: settingFlags(command), env: process.env, file, dataFolder }),
    };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { kind: 'wrong', problem: error.message };
  }
}

/** One line for each finding, and below it what to do. */
function findingsText(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.map(({ check, status, detail, what_to_do }) => {
    const indent = ' '.repeat(width + 8);
    const shown = `${status.padEnd(4)}  ${check.padEnd(width)}  ${detail.replaceAll('\n', `\n${indent}`)}`;
    return what_to_do === null ? shown : `${shown}\n${indent}-> ${what_to_do}`;
  });
  const count = (wanted: string) => findings.filter(({ status }) => status === wanted).length;
  const [warn, bad] = [count('warn'), count('bad')];
  const end =
    warn + bad === 0 ? 'Everything is OK.' : `${bad} bad, ${counted(warn, 'warning')}, ${count('ok')} OK.`;
  return [...lines, '', end].join('\n');
}
