/** The manual's topics, in the order in which they are listed. */
import { alertsText } from './alerts.ts';
import { backupText } from './backup.ts';
import { changeStreamText } from './change-stream.ts';
import { clientGuideText } from './client-guide.ts';
import { type CommandSummary, commandsText } from './commands.ts';
import { disasterRecoveryText } from './disaster-recovery.ts';
import { exportFormatText } from './export-format.ts';
import { growthText } from './growth.ts';
import { installationText } from './installation.ts';
import { logFormatText } from './log-format.ts';
import { monitoringText } from './monitoring.ts';
import { operationsText } from './operations.ts';
import { periodsText } from './periods.ts';
import { preseedingText } from './preseeding.ts';
import { pullText } from './pull.ts';
import { quickStartText } from './quick-start.ts';
import { securityText } from './security.ts';
import { serviceText } from './service.ts';
import { settingsText } from './settings.ts';
import { tokensText } from './tokens.ts';

export interface Topic {
  readonly name: string;
  readonly title: string;
  /** @param commands every command of the program, for the topic that lists them */
  readonly text: (commands: readonly CommandSummary[]) => string;
}

export const TOPICS: readonly Topic[] = [
  { name: 'quick-start', title: 'from nothing to the first page of the change stream', text: quickStartText },
  {
    name: 'installation',
    title: 'the executable: what it needs, its checksum, what is inside, building it',
    text: installationText,
  },
  {
    name: 'service',
    title: 'to run it for good: under systemd, in a container, under another supervisor',
    text: serviceText,
  },
  { name: 'commands', title: 'every command with its options', text: commandsText },
  { name: 'settings', title: 'every setting, its default and where it can be given', text: settingsText },
  {
    name: 'preseeding',
    title: 'accounts, subscriptions and keys in the configuration',
    text: preseedingText,
  },
  {
    name: 'export-format',
    title: 'the files that are dropped, for those who write them',
    text: exportFormatText,
  },
  {
    name: 'client-guide',
    title: 'for those who write a client: the copy, the stream, trying again, bad days on a laptop',
    text: clientGuideText,
  },
  { name: 'change-stream', title: 'how a client reads, for those who write one', text: changeStreamText },
  { name: 'pull', title: 'the client that comes with it: a copy that stays up to date', text: pullText },
  { name: 'periods', title: 'reading what was found in a period; a full copy', text: periodsText },
  {
    name: 'tokens',
    title: 'access tokens in place of the key, for those who write a client',
    text: tokensText,
  },
  { name: 'alerts', title: 'every alert and what to do about it, health, missing windows', text: alertsText },
  {
    name: 'operations',
    title: 'files that failed, were held or refused; replay, pause, the log',
    text: operationsText,
  },
  { name: 'growth', title: 'room on disk, memory, time; what does not move', text: growthText },
  {
    name: 'backup',
    title: 'backup, schedule, rehearsal, restore, an older data folder that is put back',
    text: backupText,
  },
  {
    name: 'disaster-recovery',
    title: 'when the machine dies: what to copy, in which order; a second machine kept ready',
    text: disasterRecoveryText,
  },
  {
    name: 'log-format',
    title: 'what stands in log/ and access-log/, to read it without this program',
    text: logFormatText,
  },
  { name: 'monitoring', title: 'metrics, the status page, rules for Prometheus', text: monitoringText },
  { name: 'security', title: 'keys, addresses, TLS, the base address, the secret', text: securityText },
];
