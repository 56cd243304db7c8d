/** Manual, topic `service`: under systemd, in a container, under another supervisor. */
import { fenced, page, paragraph, points } from './text.ts';

export function serviceText(): string {
  return page(
    'SERVICE',
    paragraph(`
      The program (topic installation) needs a folder of its own on a local disk, the data folder; a folder into
      which exports are dropped; and a user that is not root.`),
    ...SERVICE,
    ...CONTAINER,
    ...BY_HAND,
  );
}

const SERVICE = [
  'Under systemd',
  'Copy the program, look at what would be written, write it, and run the lines that it prints:',
  fenced(
    'sh',
    `
install -m 755 wirewatch /usr/local/bin/wirewatch
wirewatch setup --drop /srv/exports --base-url https://detections.example.org --dry-run
wirewatch setup --drop /srv/exports --base-url https://detections.example.org`,
  ),
  points(
    'It writes /etc/wirewatch/wirewatch.toml (every setting, commented), /etc/systemd/system/wirewatch.service, and /etc/sysusers.d/wirewatch.conf, from which systemd-sysusers makes the user. It starts nothing. The data folder is /var/lib/wirewatch unless --data names another.',
    'A configuration that is there is never written over: what was asked for and differs from it is listed, with exit code 1. The unit is made to fit the configuration that holds. After a change of [ingest] drop, [backup] folder or [log] file, or of the program\'s place, run it again, and the lines that it prints: it renews its unit unless you have changed that, and a restart makes it hold. Changes of your own belong in "systemctl edit wirewatch".',
    'A unit that you have changed stays as it is. Where it does not follow what was asked for, that is listed too, with exit code 1: move your changes into "systemctl edit wirewatch", remove the unit, and run setup again.',
    'The service waits for the disks of the data folder and of the drop folder. Without the disk of [backup] folder it runs, and an alert says so; after mounting it, restart the service. Where the folder of [log] file is missing, the appliance says that and ends with 78.',
    '"wirewatch setup --undo" removes the three files as long as they are as it made them, and lists what has to be removed by hand, with exit code 1. Everything else stays, and is named: the data folder, the drop folder and the backups outside it, the cache, the program, the user.',
    'The user is one of its own, with a name that stays (--user NAME takes another), so that commands can be run as it, and the program that writes exports can be given its group. --dynamic-user lets systemd make one for as long as the service runs; then everything has to lie below /var/lib, and commands are run as root, which act as that user in its folder.',
    "Drop folder: /srv/exports is made with mode 3770, so that a member of the group can move only files of its own, not archive/; put the user of the program that writes exports into the group wirewatch, and have it write files that the group may read. The drop folder within the data folder can be written by the service's user and root alone.",
    'Commands are run as the user of the service, with WIREWATCH_DATA and WIREWATCH_CONFIG set as setup prints it.',
  ),
  paragraph(`
    The unit is closed up as far as the appliance allows: "systemd-analyze security wirewatch" gives it 1.3 of 10
    (OK). It sees no homes, no devices and no other processes, has no capability (but for a port below 1024), and
    writes only to its own folders. MemoryDenyWriteExecute is not set, since JavaScript is compiled while it runs.`),
  points(
    'Type=notify: "systemctl start" returns when connections are accepted. The word is sent by systemd-notify, which belongs to systemd; where setup does not find it, the unit has Type=exec.',
    'WatchdogSec=3min: an appliance that gives no sign of life for so long is started again.',
    'It is started again after every fault, but not after exit code 78: then the configuration or the data folder is wrong, and "journalctl -u wirewatch" says what.',
    'OnFailure= in "systemctl edit wirewatch", below [Unit], names a unit that systemd starts when the service ends for good, as with exit code 78; the unit shows it as a comment. A service that is started again after a fault does not set it off: for that, watch GET /v1/health.',
    '"systemctl reload wirewatch" opens the log anew and looks for a renewed certificate.',
    'To prepare an image or a package: --root DIR reads and writes everything below DIR, --program names the program as the finished system has it, --service writes the unit where DIR has no systemd.',
  ),
];

const CONTAINER = [
  'In a container',
  fenced(
    'sh',
    `
# Containerfile
FROM debian:12-slim
COPY --chmod=755 wirewatch /usr/local/bin/wirewatch
RUN install -d -m 0700 -o 10001 -g 10001 /data
USER 10001:10001
ENV WIREWATCH_DATA=/data WIREWATCH_SERVER_HOST=0.0.0.0 WIREWATCH_ADDON_DIR=/run/wirewatch/addon
VOLUME /data
EXPOSE 8080
HEALTHCHECK --start-period=60s CMD ["wirewatch", "healthcheck"]
ENTRYPOINT ["wirewatch"]
CMD ["serve"]`,
  ),
  fenced(
    'sh',
    `
# compose.yaml
services:
  wirewatch:
    build: .
    init: true
    read_only: true
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    restart: unless-stopped
    stop_grace_period: 30s
    ports: ["127.0.0.1:8080:8080"]
    tmpfs: ["/run/wirewatch:exec,mode=1777"]
    environment:
      WIREWATCH_INGEST_DROP: /exports
      WIREWATCH_SERVER_BASE_URL: https://detections.example.org
    volumes:
      - data:/data
      - ./exports:/exports
volumes:
  data: {}`,
  ),
  points(
    'Everything that lasts is in /data (a volume on a local disk) and in the drop folder, which must be one file system, writable for user 10001. The root can be read-only.',
    'The library of the database is loaded from a file, hence the small tmpfs with exec. Topic installation says which folders will do.',
    'Commands run beside it: docker compose exec wirewatch wirewatch key list. The log is on stderr: docker compose logs.',
    'One container a data folder; a second one is refused.',
  ),
];

const BY_HAND = [
  'Without systemd',
  fenced(
    'sh',
    `
wirewatch setup --no-service --data /var/lib/wirewatch
wirewatch serve --data /var/lib/wirewatch`,
  ),
  points(
    "The first line writes a commented configuration into the data folder, where it is found without being named. The second stays in the foreground, as supervisors (runit, s6, OpenRC's supervise-daemon) want it: start it as a user of its own, end it with SIGTERM, start it again unless it ended with 78.",
    'Where the supervisor does not keep stderr, set [log] file, and rotate it (topic operations).',
    'WIREWATCH_ADDON_DIR names a folder for the library of the database, where the user has neither a home nor a temporary folder that will do (topic installation).',
  ),
];
