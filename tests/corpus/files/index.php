<?php require 'head.php'; ?>
<title><?= htmlspecialchars($title) ?></title>
<!-- Written by the nightly job. -->
<form action="/save" method="post"><input type="hidden" name="token" value="<?= $token ?>"></form>
