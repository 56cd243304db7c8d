/** Manual, topic `installation`. */
import { fenced, page, paragraph, points } from './text.ts';

export function installationText(): string {
  return page(
    'INSTALLATION',
    paragraph(`
      The executable is one file. It needs no Node, no other package, no network to start, and no home. Copy it to
      where programs lie, with the two files that were made beside it, and check that it is whole:`),
    fenced('sh', 'sha256sum -c wirewatch.sha256\n./wirewatch version'),
    'What it needs',
    points(
      'Linux on x64 or arm64 with glibc 2.34 and libstdc++ 3.4.29 (GCC 11) or newer: Debian 12, Ubuntu 22.04, RHEL 9, Amazon Linux 2023 and later ones. Alpine and other musl systems have no glibc: use a container or a virtual machine.',
      'A folder in which it may keep the library of its database, 2 MB, since the system loads code only from files. The first that works of: WIREWATCH_ADDON_DIR, $XDG_CACHE_HOME/wirewatch, ~/.cache/wirewatch, $XDG_RUNTIME_DIR/wirewatch, $TMPDIR/wirewatch-UID, /dev/shm/wirewatch-UID. It has to belong to the user of the appliance with mode 0700, not lie in a folder of another user or one to which anyone can write (unless sticky, as /tmp is), and not be mounted noexec. Where none works, it says what is wrong with each and ends with exit code 78.',
      'A local disk for the data folder. See the topic growth for how large.',
    ),
    'What is inside',
    points(
      'wirewatch licenses prints every part with its version and the text of its licence, those of Node and SQLite too.',
      'wirewatch.cdx.json is the same list for machines, in CycloneDX 1.6, with package addresses (purl), licences and hashes, and the SHA-256 of the executable it belongs to. Give it to what looks for known vulnerabilities in your programs.',
      'wirewatch version --json says version, commit, Node, SQLite and platform; the same commit stands in wirewatch.cdx.json.',
    ),
    'Completion in the shell',
    paragraph(`
      These make commands, options and topics complete on the Tab key, each for one shell and from its next start on:`),
    fenced(
      'sh',
      `
wirewatch completion bash > /etc/bash_completion.d/wirewatch
wirewatch completion zsh > /usr/local/share/zsh/site-functions/_wirewatch
wirewatch completion fish > ~/.config/fish/completions/wirewatch.fish`,
    ),
    'Building it',
    paragraph(`
      In the folder of the sources, "npm run build" makes dist/wirewatch for the machine it runs on, of less than
      125 MB, and tries it. "npm run test:executable" then runs every test that uses the program from outside on it.`),
    points(
      '"npm run build -- --target linux-arm64" (or linux-x64) makes dist/wirewatch-linux-arm64 on any Linux. It fetches the Node of that platform from the package registry, the very one that package-lock.json names, and keeps it in dist/. Such an executable cannot be run where it is made: its header, its size and what was put into it are checked, and nothing else. It starts somewhat slower than one that is built on its own platform. Try it on such a machine before it goes into use.',
      'On a Mac with an Intel processor "npm run build" makes one for that Mac, which nobody has tried. There is none for Macs with ARM: the package registry has only Node 24.0.0 for them, and an executable of that loads code that NODE_OPTIONS names. There is none for Windows: nobody has run the appliance there, and its folders are guarded by owners and modes. Use Linux under WSL 2 or in a container.',
    ),
    'Updating',
    fenced(
      'sh',
      `
wirewatch backup /backups/wirewatch
install -m 755 /usr/local/bin/wirewatch /usr/local/bin/wirewatch-before
install -m 755 wirewatch /usr/local/bin/wirewatch
systemctl restart wirewatch
wirewatch check`,
    ),
    points(
      'install puts a new file in the place of the old one, which goes on running until the restart. cp would write into the running program, and fails ("text file busy").',
      'A new version makes the databases anew from their logs where it needs other tables; that takes as long as reading them, and health is 503 meanwhile. The logs stay as they are.',
    ),
    'Going back',
    fenced(
      'sh',
      `
install -m 755 /usr/local/bin/wirewatch-before /usr/local/bin/wirewatch
systemctl restart wirewatch`,
    ),
    points(
      'The older version makes the databases anew from the same logs. Nothing is lost, and clients notice nothing.',
      'Where a log holds what the older version does not know, it refuses to start (exit code 78), and touches nothing. Then go on with the newer one; or restore the backup from before the update, with the older program and the appliance stopped: "wirewatch restore /backups/wirewatch --replace". What came since is read again from the archive, versions are raised once, and keys and accounts are as they were then.',
    ),
  );
}
