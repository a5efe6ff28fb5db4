//! The classes of paths that rules name, each with its patterns.

/// The classes and their patterns for normalized paths: `~` is any user's home, `*` and `?` stay
/// within a component, a `**` at the end is anything below (or the folder itself), and a `**` at
/// the start is any folder. A space is written `?`.
pub(super) const CLASSES: [(&str, &str); 21] = [
    ("root", "/ /*$ ?: ?:/*$"),
    // Recognized by its variable, not by its name.
    ("unset-root", ""),
    (
        "home",
        "~ ~/*$ /home /home/*$ /Users /Users/*$ c:/users c:/users/*$",
    ),
    (
        "system",
        "/bin /bin/* /boot /boot/* /dev /dev/* /etc /etc/* /lib /lib/* /lib32 /lib64 /lib64/* /opt /opt/*$ /proc \
         /proc/*$ /run /run/*$ /sbin /sbin/* /srv /srv/*$ /sys /sys/*$ /usr /usr/*$ /usr/bin /usr/bin/* /usr/lib \
         /usr/lib/*$ /usr/lib64 /usr/sbin /usr/sbin/* /usr/local /usr/local/*$ /usr/local/bin /usr/local/lib \
         /usr/share /usr/share/*$ /usr/include /usr/libexec /var /var/*$ /var/lib /var/lib/*$ /var/lib/dpkg \
         /var/lib/docker /var/lib/mysql /var/lib/postgresql /var/log /var/www /var/spool /var/mail /var/backups \
         /etc/ssh /etc/ssl /etc/pam.d /etc/systemd /System /System/** /Library /Applications /Applications/*$ \
         /private /private/etc /private/var /Volumes /Volumes/*$ /mnt /mnt/*$ /media /media/*$ /snap /nix \
         /nix/store /efi /boot/efi/** ?:/windows/** ?:/program?files*/** ?:/programdata ?:/users ?:/recovery/**",
    ),
    // Folders further down without which the system does not start, or its programs do not run.
    (
        "system-part",
        "/boot/** /usr/lib32 /usr/libx32 /libx32 /usr/lib64/* /usr/lib32/*$ /usr/lib/*-linux-gnu* \
         /usr/lib/*-linux-gnu*/*$ /lib/*-linux-gnu*/*$ /usr/lib/*-linux-musl* /usr/lib/*-linux-gnu*/security \
         /lib/*-linux-gnu*/security /usr/lib/modules /usr/lib/modules/* /usr/lib/modules/*/kernel /lib/modules/* \
         /lib/modules/*/kernel /usr/lib/systemd /usr/lib/systemd/* /lib/systemd/* /usr/lib/firmware \
         /usr/lib/firmware/*$ /lib/firmware/*$ /usr/lib/udev /usr/lib/udev/* /lib/udev/* /usr/lib/security \
         /usr/lib/security/** /lib/security/** /usr/lib/sudo /usr/lib/openssh /usr/lib/apt /usr/lib/dpkg /usr/lib/rpm \
         /usr/lib/grub /usr/lib/grub/** /usr/lib/dracut /usr/lib/kernel /usr/lib/dbus-1.0 /usr/lib/polkit-1 \
         /usr/lib/ssl /usr/lib/python3 /usr/lib/python3.* /usr/lib/python3/dist-packages \
         /usr/lib/python3/dist-packages/*$ /usr/libexec/*$ /usr/include/*$ /usr/local/bin/*$ /usr/local/sbin \
         /usr/local/sbin/*$ /usr/local/lib/*$ /usr/local/etc /usr/share/dbus-1 /usr/share/polkit-1 /usr/share/pam \
         /usr/share/pam-configs /usr/share/ca-certificates /usr/share/keyrings /usr/share/perl /usr/share/perl5 \
         /usr/share/grub /usr/share/initramfs-tools /etc/ssl/certs /etc/ssl/private /etc/ssl/certs/*$ \
         /etc/ssl/private/*$ /etc/pam.d/*$ /etc/ssh/*$ /etc/systemd/system /etc/systemd/system/*$ /etc/sudoers.d/*$ \
         /etc/security/*$ /etc/network/*$ /etc/kubernetes/pki /etc/kubernetes/manifests /etc/letsencrypt/live \
         /etc/pki/tls /etc/pki/ca-trust /var/lib/dpkg/info /var/lib/dpkg/info/*$ /var/lib/rpm /var/lib/pacman \
         /var/lib/systemd /var/lib/mysql/*$ /var/lib/postgresql/*$ /var/lib/postgresql/*/main \
         /var/lib/postgresql/data /var/lib/postgresql/data/*$ /var/lib/pgsql /var/lib/pgsql/data /var/lib/docker/*$ \
         /var/lib/docker/volumes /var/lib/docker/overlay2 /var/lib/containerd /var/lib/etcd /var/lib/mongodb \
         /var/lib/redis /var/lib/libvirt /var/lib/libvirt/images /var/db /var/run /run/systemd /run/systemd/*$ \
         /sys/firmware/** /dev/mapper/*$ /dev/disk /nix/var /nix/store/*$ /opt/homebrew /opt/homebrew/*$ \
         /opt/homebrew/Cellar /usr/local/Cellar /usr/local/Homebrew /Library/LaunchDaemons /Library/LaunchAgents \
         /Library/Frameworks /Library/Extensions /Library/Keychains /Library/Preferences /Library/*$ /private/var/db \
         /private/etc/**",
    ),
    ("etc", "/etc/**"),
    (
        "binary",
        "/bin/* /sbin/* /usr/bin/* /usr/sbin/* /usr/local/bin/* /usr/local/sbin/* /lib/** /usr/lib/** /boot/** \
         ?:/windows/system32/** ?:/windows/syswow64/**",
    ),
    (
        "device",
        "/dev/sd* /dev/hd* /dev/vd* /dev/xvd* /dev/nvme* /dev/mmcblk* /dev/disk/** /dev/disk* /dev/rdisk* \
         /dev/mapper/** /dev/dm-* /dev/md* /dev/ram* /dev/zd* /dev/nbd* /dev/mtd* /dev/mem /dev/kmem /dev/port \
         /dev/block/** /dev/drbd* /dev/bcache*",
    ),
    (
        "null-device",
        "/dev/null /dev/zero /dev/random /dev/urandom /dev/full",
    ),
    (
        "accounts",
        "/etc/passwd /etc/passwd- /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/group /etc/group- \
         /etc/master.passwd /etc/sudoers /etc/sudoers.d /etc/sudoers.d/* /usr/local/etc/sudoers /usr/local/etc/sudoers.d/* /private/etc/sudoers /etc/doas.conf /etc/pam.d/** \
         /etc/pam.conf /etc/security/** /etc/subuid /etc/subgid /etc/nsswitch.conf /etc/polkit-1/** \
         /usr/share/polkit-1/** /usr/share/pam-configs/** /usr/lib/pam.d/** /etc/sudo.conf",
    ),
    (
        "credential",
        "**/etc/shadow **/etc/shadow- **/etc/gshadow **/etc/gshadow- /etc/master.passwd /etc/security/opasswd \
         /etc/sudoers /etc/krb5.keytab /etc/ssh/ssh_host_*_key /etc/ipsec.secrets /etc/ppp/*-secrets \
         /etc/ssl/private/** /etc/kubernetes/admin.conf /etc/kubernetes/pki/** /etc/rancher/k3s/k3s.yaml \
         /etc/openvpn/** /etc/wireguard/** /etc/NetworkManager/system-connections/** **/.ssh **/.ssh/id_* \
         **/.ssh/*_key **/.ssh/*.pem **/.ssh/identity **/.ssh/* **/id_rsa **/id_dsa **/id_ecdsa **/id_ed25519 \
         **/.gnupg **/.gnupg/** **/.aws **/.aws/credentials **/.aws/config **/.aws/sso/** **/.aws/cli/cache/** \
         **/.azure **/.azure/** **/.config/gcloud **/.config/gcloud/** **/.kube **/.kube/config **/.kube/kubeconfig* ~/.kube/*$ \
         **/.docker/config.json **/.netrc **/_netrc **/.npmrc ~/.pypirc **/.pypirc **/.git-credentials \
         **/.config/git/credentials **/.config/gh/hosts.yml **/.config/hub **/.config/glab-cli/** **/.vault-token \
         **/.terraform.d/credentials.tfrc.json **/.terraformrc **/.pgpass **/.my.cnf **/.mylogin.cnf **/.s3cfg \
         **/.boto **/.dockercfg **/.htpasswd **/.cargo/credentials **/.cargo/credentials.toml **/.gem/credentials \
         **/.m2/settings.xml **/.gradle/gradle.properties **/.config/doctl/** **/.config/rclone/rclone.conf \
         **/.oci/** **/.bluemix/** **/.databrickscfg **/.snowsql/config **/.huggingface/token \
         **/.cache/huggingface/token **/.config/op/** **/.password-store **/.password-store/** \
         **/.local/share/keyrings/** **/Library/Keychains **/Library/Keychains/** **/.electrum/** \
         **/.bitcoin/wallet.dat **/wallet.dat **/key3.db **/key4.db **/logins.json **/.mozilla/firefox/** \
         **/Login?Data **/.claude/.credentials.json **/.claude.json **/.codex/auth.json **/.config/github-copilot/** \
         /var/run/secrets/** /run/secrets/** /proc/*/environ /proc/*/mem /proc/kcore /var/lib/kubelet/pki/** \
         **/.rhosts **/ntds.dit **/config/sam **/config/security **/config/system **/.remmina/** \
         **/.config/filezilla/** **/.config/remmina/** **/.subversion/auth/** **/.fetchmailrc **/.msmtprc \
         **/.ansible/vault* **/.config/solana/id.json **/.ethereum/keystore/** **/unattend.xml **/*.kdbx \
         /etc/krb5.keytab /tmp/krb5cc_* **/User?Data/*/Cookies **/User?Data/*/Network/Cookies **/Chrome/*/Cookies \
         **/Library/Messages/chat.db **/TelegramDesktop/tdata/** **/Cookies.binarycookies **/signal/config.json",
    ),
    (
        "personal",
        "~ ~/*$ /home /home/*$ /Users /var/mail/** **/.bash_history **/.zsh_history **/.Mail/** ~/Documents \
         ~/Desktop ~/Pictures **/.thunderbird/** /etc /etc/passwd /var/backups/**",
    ),
    (
        "history",
        "**/.bash_history **/.zsh_history **/.zhistory **/.sh_history **/.ash_history **/.ksh_history **/.history \
         **/.python_history **/.mysql_history **/.psql_history **/.node_repl_history **/.rediscli_history \
         **/.lesshst **/.viminfo **/fish_history **/.local/share/fish/fish_history **/consolehost_history.txt \
         **/.wget-hsts **/.tcsh_history",
    ),
    (
        "startup",
        "~/.bashrc ~/.bash_profile ~/.bash_login ~/.bash_logout ~/.bash_aliases ~/.profile ~/.zshrc ~/.zshenv \
         ~/.zprofile ~/.zlogin ~/.kshrc ~/.cshrc ~/.tcshrc ~/.login ~/.xinitrc ~/.xprofile ~/.xsession \
         ~/.xsessionrc ~/.inputrc ~/.config/fish/** ~/.config/autostart/** /etc/profile /etc/profile.d/** \
         /etc/bash.bashrc /etc/bashrc /etc/zshrc /etc/zshenv /etc/zsh/** /etc/environment /etc/skel/** \
         /etc/rc.local /etc/rc.d/** /etc/rc*.d/** /etc/update-motd.d/** /etc/xdg/autostart/** /etc/csh.* \
         ~/.pam_environment ~/.ssh/rc /etc/ssh/sshrc \
         **/Start?Menu/Programs/Startup/** **/start?menu/programs/startup/** **/*powershell_profile.ps1 \
         **/windowspowershell/v1.0/profile.ps1 **/powershell/profile.ps1 **/netlogon/*.bat **/netlogon/*.cmd \
         **/netlogon/*.vbs **/netlogon/*.ps1",
    ),
    (
        "authorized-keys",
        "**/.ssh/authorized_keys **/.ssh/authorized_keys2 /etc/ssh/authorized_keys /etc/ssh/authorized_keys/** \
         /etc/ssh/sshd_config /etc/ssh/sshd_config.d/** **/ssh/administrators_authorized_keys",
    ),
    (
        "cron",
        "/etc/crontab /etc/cron.*/** /etc/cron.* /etc/anacrontab /var/spool/cron/** /var/spool/cron \
         /var/spool/at/** /var/at/** /etc/cron.allow",
    ),
    (
        "service",
        "/etc/systemd/system/** /etc/systemd/user/** /lib/systemd/** /usr/lib/systemd/** /run/systemd/system/** \
         ~/.config/systemd/** /etc/init.d/** /etc/init/** /etc/inittab /etc/inetd.conf /etc/xinetd.conf /etc/xinetd.d/** ~/Library/LaunchAgents/** \
         /Library/LaunchAgents/** /Library/LaunchDaemons/** /System/Library/LaunchDaemons/** /etc/udev/rules.d/** \
         /lib/udev/rules.d/** /etc/modules-load.d/** /etc/modprobe.d/** /etc/modules /etc/emond.d/** \
         /etc/NetworkManager/dispatcher.d/** /etc/network/if-*.d/** /etc/networkd-dispatcher/** \
         /etc/dhcp/dhclient-*-hooks.d/** /lib/dhcpcd/dhcpcd-hooks/** /usr/lib/dhcpcd/dhcpcd-hooks/** \
         /etc/ppp/ip-up.d/** /etc/ppp/ip-down.d/** /etc/resolvconf/update.d/** /usr/lib/udev/rules.d/** \
         /run/udev/rules.d/** /usr/local/lib/systemd/** /etc/systemd/system-generators/** \
         /etc/systemd/user-generators/** /etc/systemd/*-environment-generators/** /etc/systemd/system-sleep/** \
         /etc/systemd/system-shutdown/** /etc/kernel/*.d/** /etc/initramfs-tools/hooks/** \
         /etc/initramfs-tools/scripts/** /etc/dracut.conf.d/** /etc/grub.d/** /etc/acpi/** /etc/pm/** \
         /usr/lib/pm-utils/** /etc/ca-certificates/update.d/** /etc/pacman.d/hooks/** /usr/share/libalpm/hooks/** \
         /etc/dnf/plugins/post-transaction-actions.d/** /etc/local.d/** /etc/runit/** /etc/sv/** /etc/service/** \
         /etc/incron.d/** /var/spool/incron/** /etc/X11/xinit/xinitrc.d/** /etc/X11/Xsession.d/** \
         /usr/share/dbus-1/system-services/** /etc/needrestart/hook.d/** /etc/needrestart/restart.d/** \
         /usr/share/git-core/templates/hooks/** /etc/smartmontools/run.d/** /etc/apcupsd/** /etc/usb_modeswitch.d/**",
    ),
    (
        "loader",
        "/etc/ld.so.preload /etc/ld.so.conf /etc/ld.so.conf.d/**",
    ),
    (
        "log",
        "/var/log /var/log/** /var/run/utmp /run/utmp /var/audit/** /var/account/** /private/var/log/** \
         ~/Library/Logs",
    ),
    (
        "kernel",
        "/proc/sys/** /proc/sysrq-trigger /sys/kernel/** /sys/power/** /sys/fs/** /sys/firmware/** /sys/module/** \
         /boot/** /proc/*/mem",
    ),
    (
        "env-file",
        "**/.env **/.env.* **/.envrc **/secrets.y*ml **/credentials.json **/*.pem **/*.p12 **/*.pfx **/*.kdbx \
         **/*.key **/*.jks **/*.keystore **/service-account*.json **/.secrets",
    ),
];
