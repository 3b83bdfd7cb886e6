#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Jobs of weir in Perl, written from docs/wire.md, with nothing but perl.
#   jobs.pl add TOPIC COUNT   adds jobs with the bodies {"n": 0}, {"n": 1}, ...
#   jobs.pl work TOPIC        runs jobs, one after the other, until SIGTERM
# WEIR_SERVER is HOST:PORT or the path of a socket, WEIR_SCRIPTS a folder.
use strict; use warnings; use IO::Socket::INET; use IO::Socket::UNIX;
my ($verb, $topic, $count) = @ARGV;

sub dial {
    my $at = $ENV{WEIR_SERVER} // "127.0.0.1:6379";
    return ($at =~ m{^/} ? IO::Socket::UNIX->new(Peer => $at)
        : IO::Socket::INET->new(PeerAddr => $at)) // die "no server at $at\n";
}
my $server = dial();

sub command {
    return "*" . @_ . "\r\n" .
        join "", map { "\$" . length() . "\r\n$_\r\n" } @_;
}

sub answer {    # an error ends the program
    my ($type, $rest) = (<$server> // "") =~ /^(.)(.*)\r\n/
        or die "the server is gone\n";
    die "$rest\n" if $type eq "-";
    return [map { answer() } 1 .. $rest] if $type eq "*";
    return $rest if $type ne "\$";
    read($server, my $data, $rest + 2) == $rest + 2 or die "it is gone\n";
    return substr $data, 0, $rest;
}

sub ask { print $server command(@_); return answer() }
my %numbers = (ca => "f> 4", cb => "d> 8", cc => "C 1", cd => "n 2",
    ce => "N 4", cf => "Q> 8", d0 => "c 1", d1 => "s> 2", d2 => "l> 4",
    d3 => "q> 8");
my %sizes = (c4 => "C", c5 => "n", c6 => "N", d9 => "C", da => "n", db => "N",
    dc => "n", dd => "N", de => "n", df => "N");

sub unpacked {    # takes one value of msgpack off its argument
    my $hex = sprintf "%02x", my $kind = ord substr($_[0], 0, 1, "");
    return $kind < 0x80 ? $kind : $kind - 256 if $kind < 0x80 || $kind > 0xdf;
    return $kind == 0xc0 ? undef : $kind - 0xc2 if $hex =~ /^c[0-3]/;
    my ($form, $len) = split / /, $numbers{$hex} // "";
    return unpack $form, substr($_[0], 0, $len, "") if $form;
    my $size = $kind & ($kind < 0xa0 ? 15 : 31);
    if ($kind >= 0xc0) {
        $form = $sizes{$hex} // die "an extension of msgpack\n";
        $size = unpack $form, substr($_[0], 0, length pack($form, 0), "");
    }
    return substr $_[0], 0, $size, "" if $hex =~ /^[ab]|^c|^d[9ab]/;
    return [map { unpacked($_[0]) } 1 .. $size] if $hex =~ /^9|dc|dd/;
    return {map { unpacked($_[0]) } 1 .. 2 * $size};
}

sub keys_of { return map { "weir:{$topic}:$_" } @_ }

sub script {    # its SHA1
    my $path = $ENV{WEIR_SCRIPTS} // "/usr/share/weir/scripts";
    open my $file, "<", "$path/$_[0].lua" or die "$path/$_[0].lua: $!\n";
    return ask("SCRIPT", "LOAD", join "", <$file>);
}

sub run {
    my ($id, $body, $attempt) = @_;
    print "$id $body->{n} $attempt\n";
    die "told to fail\n" if $attempt <= ($body->{fail} // 0);
}

sub work {
    my ($pull, $finish, $name) = (script("pull"), script("finish"), "perl-$$");
    my ($ears, $ready, $is_over) = (dial(), "", 0);
    my @keys = (13, keys_of(qw(wait run lease ids meta idle held due dead rec
        options started absent)));
    $SIG{TERM} = sub { $is_over = 1 };
    syswrite $ears, command("SUBSCRIBE", "weir:wake:$name");
    until ($is_over) {
        my $found = ask("EVALSHA", $pull, @keys, 1, $name, 0, "");
        die "$topic is of the kind $found->[1]\n" if @$found == 2;
        for (@{$found->[8]}) {
            my ($handle, $id, $body, $facts) = @$_;
            eval { run($id, unpacked($body), unpacked($facts)->[1] + 1) };
            ask("EVALSHA", $finish, @keys, $name, $handle,
                $@ eq "" ? "done" : "retry", "", $@);
        }
        my $us = $found->[2];    # sleeps so long, or until it is woken
        $us = 5e6 if $us < 0 || $us > 5e6;
        vec($ready, fileno $ears, 1) = 1;
        sysread $ears, my $message, 65536
            if $us && !$is_over && select($ready, undef, undef, $us / 1e6) > 0;
    }
    ask("ZREM", keys_of("idle"), $name);
}

$| = 1; ask("SADD", "weir:topics", $topic);
work(), exit if $verb eq "work";
my @push = ("EVALSHA", script("push"), 6,
    keys_of(qw(wait ids meta idle options absent)), $topic, "");
print join(" ", @{ask(@push, "\x81\xa1n" . pack("C q>", 0xd3, $_), "r0")}), "\n"
    for 0 .. $count - 1;
