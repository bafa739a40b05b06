## Filter design: clean an electrocardiogram (250 Hz) of mains hum, drift and noise, show what the filters do, and find the beats.
pkg load signal

record = csvread ("ecg.csv", 1, 0);
t = record(:,1);
raw = record(:,2);
fs = 1 / (t(2) - t(1));

[b_band, a_band] = butter (3, [0.7 40] / (fs / 2));          # drift and noise
[b_notch, a_notch] = pei_tseng_notch (50 / (fs / 2), 4 / (fs / 2));   # mains
clean = filtfilt (b_notch, a_notch, filtfilt (b_band, a_band, raw));

[~, beats] = findpeaks (max (clean, 0), "MinPeakHeight", 0.5 * max (clean), "MinPeakDistance", round (0.4 * fs));
beats = sort (beats);
rate = 60 ./ diff (t(beats));
printf ("%d beats, heart rate %.1f +- %.1f per minute\n", numel (beats), mean (rate), std (rate));
csvwrite ("beats.csv", t(beats));

figure ("position", [0 0 1100 800]);
subplot (3, 1, 1);
plot (t, raw, "color", [0.6 0.6 0.6]);
title ("Measured");
ylabel ("mV");
xlim ([0 12]);

subplot (3, 1, 2);
plot (t, clean, "linewidth", 1, t(beats), clean(beats), "v", "markerfacecolor", "r");
title (sprintf ("Filtered: %.0f beats per minute", mean (rate)));
ylabel ("mV");
xlabel ("time (s)");
xlim ([0 12]);

subplot (3, 2, 5);
[h, w] = freqz (conv (b_band, b_notch), conv (a_band, a_notch), 4096, fs);
plot (w, 40 * log10 (abs (h)), "linewidth", 1);   # twice the filter: filtfilt runs it both ways
title ("Filter");
xlabel ("frequency (Hz)");
ylabel ("gain (dB)");
axis ([0 fs/2 -80 5]);
grid on

subplot (3, 2, 6);
[before, f] = pwelch (raw, 512, 0.5, 512, fs);
after = pwelch (clean, 512, 0.5, 512, fs);
semilogy (f, before, f, after, "linewidth", 1);
title ("Spectrum");
xlabel ("frequency (Hz)");
legend ("measured", "filtered");
axis ([0 fs/2 1e-8 1]);
grid on
